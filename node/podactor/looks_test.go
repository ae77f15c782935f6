package podactor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime/runtimetest"
)

// slowCalls is an engine whose calls take a while before and after their effect.
type slowCalls struct{ *actortest.Bench }

const callTakes = 100 * time.Millisecond

func (e slowCalls) RunSandbox(ctx context.Context, req podactor.RunSandboxRequest) (podactor.RunSandboxResult, error) {
	<-time.After(callTakes)
	defer func() { <-time.After(callTakes) }()
	return e.Bench.RunSandbox(ctx, req)
}

func (e slowCalls) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	<-time.After(callTakes)
	defer func() { <-time.After(callTakes) }()
	return e.Bench.StartContainer(ctx, req)
}

func (e slowCalls) StopContainer(ctx context.Context, req podactor.StopContainerRequest) error {
	<-time.After(callTakes)
	defer func() { <-time.After(callTakes) }()
	return e.Bench.StopContainer(ctx, req)
}

func (e slowCalls) Remove(ctx context.Context, req podactor.RemoveRequest) error {
	<-time.After(callTakes)
	defer func() { <-time.After(callTakes) }()
	return e.Bench.Remove(ctx, req)
}

func TestOneLookPerAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Engine = slowCalls{s.Bench} })
		s.after(time.Minute)
		// One before anything is done, one after the sandbox, one after the container.
		if looks := s.Calls(runtimetest.MethodLook); looks != 3 {
			t.Errorf("%d looks for a start, want 3", looks)
		}
		s.wantRunning(1) // which looks, too
		before := s.Calls(runtimetest.MethodLook)
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Minute)
		if looks := s.Calls(runtimetest.MethodLook) - before; looks != 2 {
			t.Errorf("%d looks for a stop, want 2: after the container and after the sandbox", looks)
		}
	})
}

// slowLooks is a watcher whose looks take time, as every real one's do.
type slowLooks struct{ podactor.Watcher }

func (w slowLooks) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	<-time.After(callTakes)
	return w.Watcher.Look(ctx, req)
}

func TestOldNewsBringsNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Watcher = slowLooks{s.parts.Watcher} })
		s.after(time.Minute)
		for _, tc := range []struct {
			name        string
			hint        func()
			least, most int
		}{
			{"older than the last look", func() { s.actor.Hint(time.Now().Add(-2 * time.Minute)) }, 0, 0},
			{"newer", func() { s.actor.Hint(time.Now()) }, 1, 1},
			{"of an unknown time", func() { s.actor.Hint(time.Time{}) }, 1, 1},
			// The actor may wake in their midst: then one look begins before the
			// last of them, and another one after it.
			{"many at once", func() {
				for range 100 {
					s.actor.Poke()
				}
			}, 1, 2},
		} {
			before := s.Calls(runtimetest.MethodLook)
			tc.hint()
			s.after(time.Second)
			if looks := s.Calls(runtimetest.MethodLook) - before; looks < tc.least || looks > tc.most {
				t.Errorf("%s: %d looks, want %d to %d", tc.name, looks, tc.least, tc.most)
			}
		}
	})
}

// hangingRemoval is an engine that takes as long to remove as it is told to.
type hangingRemoval struct {
	*actortest.Bench
	release chan struct{}
}

func (e hangingRemoval) Remove(ctx context.Context, req podactor.RemoveRequest) error {
	<-e.release
	return e.Bench.Remove(ctx, req)
}

func TestHintDoesNotWaitForALongAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Engine = hangingRemoval{Bench: s.Bench, release: release}
		})
		s.after(time.Minute)
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.after(time.Minute) // the removal hangs
		before := s.Calls(runtimetest.MethodLook)
		s.actor.Poke()
		s.after(2 * time.Second)
		if looks := s.Calls(runtimetest.MethodLook) - before; looks != 1 {
			t.Errorf("%d looks while an action hangs, want 1", looks)
		}
		close(release)
		s.gone(time.Minute)
	})
}

// unrouted is a watcher of a runtime whose first sandbox got no address, and
// that has nothing to say about it.
type unrouted struct{ *actortest.Bench }

func (w unrouted) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	res, err := w.Bench.Look(ctx, req)
	for i := range res.Pod.Sandboxes {
		if s := &res.Pod.Sandboxes[i]; s.Attempt == 0 {
			s.IPs, s.NoAddress = nil, s.Ready
		}
	}
	return res, err
}

func TestSandboxWithoutAddressIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Watcher = unrouted{s.Bench} })
		s.after(lifecycle.SettleTime - time.Millisecond)
		if n := s.Calls(runtimetest.MethodRunSandbox); n != 1 {
			t.Errorf("%d sandboxes at first", n)
		}
		s.after(time.Minute)
		s.wantRunning(1)
		if n := s.Calls(runtimetest.MethodRunSandbox); n != 2 {
			t.Errorf("%d sandboxes, want a second one", n)
		}
	})
}
