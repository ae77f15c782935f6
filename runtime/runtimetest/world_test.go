package runtimetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// recorder takes what a World reports, so that tests can break rules.
type recorder struct {
	mu   sync.Mutex
	text []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, fmt.Sprintf(format, args...))
}

const image = "registry.example/app:1"

// pod makes a world's image, sandbox and one container, not yet started.
func pod(t *testing.T, w *runtimetest.World, uid string, command ...string) (sandbox runtime.SandboxConfig, sandboxID, containerID string) {
	t.Helper()
	w.AddImage(image, runtimetest.RegistryImage{})
	sandbox = runtimetest.SandboxFor("default", "pod-"+uid, uid, 0)
	sandboxID, err := w.RunSandbox(t.Context(), sandbox)
	must(t, err)
	containerID, err = w.CreateContainer(t.Context(), sandboxID, runtimetest.ContainerFor(sandbox, "app", image, 0, command...), sandbox)
	must(t, err)
	return sandbox, sandboxID, containerID
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pass lets that much of a bubble's time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func look(t *testing.T, w *runtimetest.World, uid string) runtime.Pod {
	t.Helper()
	p, err := w.LookPod(t.Context(), uid)
	must(t, err)
	return p
}

func newest(t *testing.T, w *runtimetest.World, uid, name string) runtime.Container {
	t.Helper()
	c, ok := look(t, w, uid).NewestContainer(name)
	if !ok {
		t.Fatalf("pod %s has no container %s", uid, name)
	}
	return c
}

func TestContainerLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runtimetest.NewWorld(t, runtimetest.Config{DualStack: true})
		w.Script("app", runtimetest.Behaviour{RunFor: time.Minute, ExitCode: 3, Message: "bye"})
		start := time.Now()
		_, sandboxID, id := pod(t, w, "u1")
		if c := newest(t, w, "u1", "app"); c.State != runtime.ContainerCreated || !c.StartedAt.IsZero() {
			t.Errorf("before the start: %+v", c)
		}
		must(t, w.StartContainer(t.Context(), id))
		if c := newest(t, w, "u1", "app"); c.State != runtime.ContainerRunning || !c.StartedAt.Equal(start) {
			t.Errorf("after the start: %+v", c)
		}
		pass(time.Minute)
		c := newest(t, w, "u1", "app")
		if c.State != runtime.ContainerExited || c.ExitCode != 3 || c.Reason != "Error" || c.Message != "bye" || c.FinishedAt.Sub(c.StartedAt) != time.Minute {
			t.Errorf("after the exit: %+v", c)
		}
		if s := look(t, w, "u1").Sandboxes[0]; !s.Ready || len(s.IPs) != 2 {
			t.Errorf("sandbox: %+v", s)
		}
		must(t, w.StopSandbox(t.Context(), sandboxID))
		must(t, w.RemoveSandbox(t.Context(), sandboxID))
		w.CheckEmpty()
	})
}

func TestStop(t *testing.T) {
	tests := []struct {
		name   string
		does   runtimetest.Behaviour
		grace  time.Duration
		code   int32
		lasted time.Duration
	}{
		{name: "ends on TERM", does: runtimetest.Behaviour{TermCode: 143}, grace: 30 * time.Second, code: 143},
		{name: "takes its time", does: runtimetest.Behaviour{TermDelay: 5 * time.Second}, grace: 30 * time.Second, lasted: 5 * time.Second},
		{name: "takes too long", does: runtimetest.Behaviour{TermDelay: time.Minute}, grace: 30 * time.Second, code: 137, lasted: 30 * time.Second},
		{name: "ignores TERM", does: runtimetest.Behaviour{IgnoresTERM: true}, grace: 10 * time.Second, code: 137, lasted: 10 * time.Second},
		{name: "no grace", does: runtimetest.Behaviour{TermCode: 143}, code: 137},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := runtimetest.NewWorld(t, runtimetest.Config{})
				w.Script("app", tt.does)
				_, _, id := pod(t, w, "u1")
				must(t, w.StartContainer(t.Context(), id))
				start := time.Now()
				must(t, w.StopContainer(t.Context(), id, tt.grace))
				if c := newest(t, w, "u1", "app"); c.ExitCode != tt.code || time.Since(start) != tt.lasted {
					t.Errorf("exit code %d after %s, want %d after %s", c.ExitCode, time.Since(start), tt.code, tt.lasted)
				}
				must(t, w.StopContainer(t.Context(), id, 0)) // idempotent
			})
		})
	}
}

func TestStopGivenUpDoesNotKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runtimetest.NewWorld(t, runtimetest.Config{})
		w.Script("app", runtimetest.Behaviour{IgnoresTERM: true})
		_, _, id := pod(t, w, "u1")
		must(t, w.StartContainer(t.Context(), id))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.StopContainer(ctx, id, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want the deadline", err)
		}
		pass(time.Hour)
		if c := newest(t, w, "u1", "app"); c.State != runtime.ContainerRunning {
			t.Errorf("state %s, want running", c.State)
		}
	})
}
