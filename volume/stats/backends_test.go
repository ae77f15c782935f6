package stats

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// backends are drivers and what is behind them.
type backends struct {
	mu      sync.Mutex
	drivers []string
	answers map[string][]BackendCondition
	err     error
	asked   int
}

func (b *backends) Drivers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drivers
}

func (b *backends) StorageHealth(ctx context.Context, driver string) ([]BackendCondition, error) {
	b.mu.Lock()
	b.asked++
	answer, err := b.answers[driver], b.err
	b.mu.Unlock()
	if driver == "hangs" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answer, err
}

func TestBackends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := []BackendCondition{{Status: "StorageUnreachable", Reason: "NoPath"}}
		from := &backends{drivers: []string{"hangs", "bad", "good"}, answers: map[string][]BackendCondition{"bad": bad}}
		b := NewBackends(time.Minute, from, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		set := func(change func()) {
			from.mu.Lock()
			change()
			from.mu.Unlock()
			pass(3 * time.Minute)
		}
		pass(time.Second)
		all := b.All()
		if len(all) != 2 || len(all["bad"]) != 1 || len(all["good"]) != 0 {
			t.Fatalf("beside one that hangs: %+v", all)
		}
		set(func() { from.err = errors.New("away") })
		if all := b.All(); len(all["bad"]) != 1 {
			t.Errorf("an error took away what was known: %+v", all)
		}
		set(func() { from.err, from.answers = nil, nil })
		if all := b.All(); len(all["bad"]) != 0 {
			t.Errorf("it is sound again: %+v", all)
		}
		set(func() { from.drivers = nil })
		if all := b.All(); len(all) != 0 {
			t.Errorf("no drivers any more: %+v", all)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		from := &backends{drivers: []string{"good"}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := NewBackends(-1, from, nil).Run(ctx); !errors.Is(err, context.DeadlineExceeded) || from.asked != 0 {
			t.Errorf("%v, asked %d times although that is off", err, from.asked)
		}
	})
}
