package podactor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
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

// racingLooks is a watcher that reads after a while and answers after another:
// as long as it says for each look by its number.
type racingLooks struct {
	*actortest.Bench
	looks *atomic.Int32
	takes map[int32][2]time.Duration
}

func (w racingLooks) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	takes := w.takes[w.looks.Add(1)]
	<-time.After(takes[0])
	defer func() { <-time.After(takes[1]) }()
	return w.Bench.Look(ctx, req)
}

// slowStarts is an engine whose starts take long after their effect, each as
// long as its container's name says.
type slowStarts struct {
	*actortest.Bench
	takes map[string]time.Duration
}

func (e slowStarts) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	defer func() { <-time.After(e.takes[req.Config.Name]) }()
	return e.Bench.StartContainer(ctx, req)
}

// Two looks overlap: the one that began first reads last and answers first. What
// the other one brings then is from before (found by test/sim).
func TestOverlappingLooksDoNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			second := *p.Spec.Containers[0].DeepCopy()
			second.Name = "second"
			p.Spec.Containers = append(p.Spec.Containers, second)
		})
		first := pod.Spec.Containers[0].Name
		ended := false
		s := newStage(t, pod, func(s *stage) {
			// The looks are: at the start, after the sandbox, after each container.
			s.parts.Engine = slowStarts{s.Bench, map[string]time.Duration{first: 500 * time.Millisecond, "second": 600 * time.Millisecond}}
			s.parts.Watcher = racingLooks{s.Bench, &atomic.Int32{}, map[int32][2]time.Duration{
				3: {300 * time.Millisecond, 50 * time.Millisecond},
				4: {50 * time.Millisecond, 400 * time.Millisecond},
			}}
			s.parts.Decide = func(in lifecycle.Input) lifecycle.Plan {
				for _, c := range in.Seen.Runtime.Containers {
					if c.Name == first {
						if ended && c.State == runtime.ContainerRunning {
							t.Errorf("%s runs again", c.ID)
						}
						ended = ended || c.State == runtime.ContainerExited
					}
				}
				return lifecycle.Decide(in)
			}
		})
		s.after(700 * time.Millisecond)
		s.Exit("u1", first, 0)
		s.after(time.Second)
		if !ended {
			t.Error("the end was not seen")
		}
		if got := s.Last("u1"); len(got.Status.ContainerStatuses) != 2 || got.Status.ContainerStatuses[0].State.Terminated == nil ||
			got.Status.ContainerStatuses[1].State.Running == nil {
			t.Errorf("status %+v", got.Status.ContainerStatuses)
		}
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Minute)
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
