package apiserver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd starts requests and notes who went when.
type crowd struct {
	t     *testing.T
	start time.Time
	limit *limiter
	mu    sync.Mutex
	lanes []LaneID
	at    []time.Duration
	wg    sync.WaitGroup
}

func newCrowd(t *testing.T, qps float64, burst int) *crowd {
	return &crowd{t: t, start: time.Now(), limit: newLimiter(qps, burst, nil)}
}

func (c *crowd) send(ctx context.Context, lane LaneID, n int) {
	for range n {
		c.wg.Go(func() {
			if err := c.limit.lane(lane).Wait(ctx); err != nil {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lanes, c.at = append(c.lanes, lane), append(c.at, time.Since(c.start))
		})
	}
	synctest.Wait()
}

func TestLimiterHoldsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, 3)
		c.send(t.Context(), LaneRead, 8)
		c.wg.Wait()
		ms := time.Millisecond
		want := []time.Duration{0, 0, 0, 100 * ms, 200 * ms, 300 * ms, 400 * ms, 500 * ms}
		if !slices.Equal(c.at, want) {
			t.Fatalf("requests went at %v, want %v", c.at, want)
		}
	})
}

func TestLimiterPutsLeaseFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 1)
		c.send(t.Context(), LaneRead, 3)
		c.send(t.Context(), LanePodStatus, 2)
		c.send(t.Context(), LaneNodeStatus, 1)
		c.send(t.Context(), LaneLease, 1)
		c.wg.Wait()
		want := []LaneID{LaneRead, LaneLease, LaneNodeStatus, LanePodStatus, LaneRead, LanePodStatus, LaneRead}
		if !slices.Equal(c.lanes, want) {
			t.Fatalf("order %v, want %v", c.lanes, want)
		}
	})
}

func TestLimiterGivesUpWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 1)
		c.send(t.Context(), LaneRead, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		// The one that gives up must not take the token with it.
		c.send(ctx, LaneLease, 1)
		c.send(t.Context(), LaneRead, 1)
		c.wg.Wait()
		if want := []time.Duration{0, time.Second}; !slices.Equal(c.at, want) {
			t.Fatalf("requests went at %v, want %v", c.at, want)
		}
		if err := c.limit.lane(LaneRead).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an ended context waits: %v", err)
		}
	})
}

// A waiter may end in the moment when it is given its token.
func TestLimiterLosesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, 1, nil)
		l.try()
		var wg sync.WaitGroup
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wg.Go(func() { _ = l.lane(LanePodStatus).Wait(ctx) })
		}
		wg.Wait()
		start := time.Now()
		for range 3 {
			if err := l.lane(LaneRead).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Fatalf("three requests took %v at one per second", took)
		}
	})
}

func TestLimiterTellsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		l := newLimiter(1, 1, func(_ LaneID, waited time.Duration) { told = append(told, waited) })
		for range 2 {
			if err := l.lane(LaneRead).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(told, []time.Duration{0, time.Second}) {
			t.Fatalf("told %v", told)
		}
	})
}

func TestNoLimit(t *testing.T) {
	if got := newLimiter(0, 0, nil).lane(LaneRead); got != nil {
		t.Fatalf("a rate of 0 limits: %v", got)
	}
}
