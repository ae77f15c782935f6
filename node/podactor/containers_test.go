package podactor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime/runtimetest"
)

// TestNoRoomForATerminationLog: the container runs without one.
func TestNoRoomForATerminationLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made list[string]
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
		})
		s := newStage(t, pod, func(s *stage) {
			s.parts.Specs = logSpecs{logs: &made}
			// A file where the directory would stand: nothing can be made below it.
			if err := os.WriteFile(filepath.Join(s.root, "pods"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		})
		s.after(time.Second)
		s.wantRunning(1)
		if got := made.get(); !slices.Equal(got, []string{""}) {
			t.Errorf("termination logs %q, want one start without any", got)
		}
	})
}

// removals is an engine that notes what it is asked to remove.
type removals struct {
	*actortest.Bench
	asked *list[podactor.RemoveRequest]
}

func (e removals) Remove(ctx context.Context, req podactor.RemoveRequest) error {
	e.asked.add(req)
	return e.Bench.Remove(ctx, req)
}

// TestRemovalSaysWhatIsRemoved: who removes the files of a container needs to
// know more than its ID.
func TestRemovalSaysWhatIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked list[podactor.RemoveRequest]
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			failing := runtimetest.Behaviour{RunFor: time.Second, ExitCode: 1}
			s.Script("app", failing, failing, runtimetest.Behaviour{})
			s.parts.Engine = removals{s.Bench, &asked}
		})
		s.after(time.Minute)
		got := asked.get()
		if len(got) != 1 {
			t.Fatalf("%d removals, want that of the first run, which nobody keeps", len(got))
		}
		if c := got[0].Container; c.ID == "" || c.ID != got[0].ContainerID || c.Name != "app" || c.Attempt != 0 {
			t.Errorf("container %s is removed as %+v", got[0].ContainerID, c)
		}
		s.stop(lifecycle.StopDeleted, 0)
		s.gone(time.Minute)
		if last := asked.get()[1]; last.SandboxID == "" || last.Container.ID != "" {
			t.Errorf("the sandbox is removed as %+v", last)
		}
	})
}

// tellingPuller has something to say about each pull.
type tellingPuller struct{ *actortest.Bench }

func (p tellingPuller) Pull(ctx context.Context, req podactor.PullRequest) (podactor.PullResult, error) {
	req.Tell(lifecycle.Event{Type: lifecycle.EventNormal, Reason: "Pulling", Message: "Pulling image"})
	return p.Bench.Pull(ctx, req)
}

func TestEventsOfAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events list[podactor.PodEvent]
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Puller = tellingPuller{s.Bench}
			s.parts.Events = eventFunc(events.add)
		})
		s.after(time.Second)
		var got []string
		for _, e := range events.get() {
			if e.UID != "u1" || e.Name != "web" || e.Pod == nil || e.Container != "app" || e.Type != lifecycle.EventNormal {
				t.Errorf("event %+v", e)
			}
			got = append(got, e.Reason+": "+e.Message)
		}
		want := []string{"Pulling: Pulling image", "Created: Container created", "Started: Container started"}
		if !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

type eventFunc func(podactor.PodEvent)

func (f eventFunc) PodEvent(e podactor.PodEvent) { f(e) }

// cleaned is a runtime whose images somebody removed once: containers can not
// be made before the next pull.
type cleaned struct {
	*actortest.Bench
	gone  *atomic.Bool
	pulls *atomic.Int32
}

func (c cleaned) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	if c.gone.Load() {
		return podactor.StartContainerResult{}, errors.New("image not found")
	}
	return c.Bench.StartContainer(ctx, req)
}

func (c cleaned) Pull(ctx context.Context, req podactor.PullRequest) (podactor.PullResult, error) {
	c.pulls.Add(1)
	c.gone.Store(false)
	return c.Bench.Pull(ctx, req)
}

func TestImageThatVanishedIsPulledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cleaned
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			failing := runtimetest.Behaviour{RunFor: time.Second, ExitCode: 1}
			s.Script("app", failing, failing, runtimetest.Behaviour{})
			c = cleaned{s.Bench, new(atomic.Bool), new(atomic.Int32)}
			s.parts.Engine, s.parts.Puller = c, c
		})
		s.after(5 * time.Second) // it backs off
		c.gone.Store(true)
		s.after(time.Minute)
		s.wantRunning(1)
		if n := c.pulls.Load(); n != 2 {
			t.Errorf("%d pulls, want one more after the start that failed", n)
		}
	})
}
