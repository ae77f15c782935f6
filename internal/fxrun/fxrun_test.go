package fxrun_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
)

// life is an fx.Lifecycle that the test starts and stops by hand.
type life struct{ hooks []fx.Hook }

func (l *life) Append(h fx.Hook) { l.hooks = append(l.hooks, h) }

func (l *life) start(ctx context.Context) error {
	for _, h := range l.hooks {
		if h.OnStart != nil {
			if err := h.OnStart(fxrun.Detach(ctx)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *life) stop(ctx context.Context) (errs []error) {
	for i := len(l.hooks) - 1; i >= 0; i-- {
		errs = append(errs, l.hooks[i].OnStop(fxrun.Detach(ctx)))
	}
	return errs
}

func untilEnd(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		run    func(context.Context) error
		failed string // what Failed tells while it should live
		stop   string // what the stop tells
	}{
		"lives and ends":      {run: untilEnd},
		"ends without a word": {run: func(context.Context) error { return nil }, failed: "part: ended by itself"},
		"fails":               {run: func(context.Context) error { return broken }, failed: "part: broken"},
		"panics":              {run: func(context.Context) error { panic("out") }, failed: "part: panic: out"},
		"fails at its end":    {run: func(ctx context.Context) error { <-ctx.Done(); return broken }, stop: "part: broken"},
		"panics at its end":   {run: func(ctx context.Context) error { <-ctx.Done(); panic("out") }, stop: "part: panic: out"},
		"takes too long": {run: func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(time.Minute)
			return nil
		}, stop: "part: did not stop within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, lc := fxrun.New(10*time.Second), &life{}
				r.Run(r.Guard(lc), "part", tc.run)
				start, cancel := context.WithCancel(t.Context())
				if err := lc.start(start); err != nil {
					t.Fatal(err)
				}
				cancel() // the end of the start is not the end of the part
				synctest.Wait()
				select {
				case err := <-r.Failed():
					want(t, err, tc.failed)
				default:
					want(t, nil, tc.failed)
				}
				want(t, errors.Join(lc.stop(t.Context())...), tc.stop)
				<-time.After(time.Hour) // what was left behind ends
			})
		})
	}
}

func want(t *testing.T, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.HasPrefix(err.Error(), text) {
		t.Errorf("error %v, want %q", err, text)
	}
}

// TestHold: what is held is given back, and a hook that a vendor appends goes
// by the name of who appends it.
func TestHold(t *testing.T) {
	r, lc := fxrun.New(time.Second), &life{}
	open := false
	set := func(to bool) func(context.Context) error {
		return func(context.Context) error { open = to; return nil }
	}
	r.Hold(lc, "lock", set(true), set(false))
	appendFailing(r.Guard(lc))
	err := lc.start(t.Context())
	want(t, err, "hook of fxrun_test.appendFailing: jammed")
	if !open {
		t.Error("not opened")
	}
	if err := errors.Join(lc.stop(t.Context())...); err != nil || open {
		t.Errorf("not closed: %v", err)
	}
	if names := r.Names(); len(names) != 1 || names[0] != "lock" {
		t.Errorf("names %v", names)
	}
}

func appendFailing(lc fx.Lifecycle) {
	lc.Append(fx.StartStopHook(func() error { return errors.New("jammed") }, func() {}))
}

// TestOverrunIsTyped: callers can tell which part hung.
func TestOverrunIsTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, lc := fxrun.New(time.Minute), &life{}
		r.Hold(lc, "slow", nil, untilEnd)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := lc.stop(ctx)[0]
		var overrun *fxrun.OverrunError
		if !errors.As(err, &overrun) || overrun.Part != "slow" || overrun.Waited != time.Second+100*time.Millisecond {
			t.Errorf("error %v", err)
		}
	})
}
