package node_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// nameless is a watcher that does not know the runtime's name at first.
type nameless struct {
	*actortest.Bench
	known *atomic.Bool
}

func (w nameless) Status() runtime.Status {
	status := w.Bench.Status()
	status.Name = "containerd"
	if !w.known.Load() {
		status.Name = ""
	}
	return status
}

// TestFactsThatComeLater: what is not known when the agent starts is told to
// pods that run already, and restarts none of them.
func TestFactsThatComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known, moved, offline atomic.Bool
		s := newStage(t, func(s *stage) {
			s.parts.Watcher = nameless{s.Bench, &known}
			s.cfg.HostIPs = func(context.Context) []string {
				switch {
				case !known.Load() || offline.Load():
					return nil
				case moved.Load():
					return []string{"10.0.0.8"}
				}
				return []string{"10.0.0.7"}
			}
		})
		started := true
		s.set(static("a", "a", func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = &corev1.Probe{} }))
		s.after(time.Minute)
		status := s.Last("a").Status
		id := status.ContainerStatuses[0].ContainerID
		if strings.Contains(id, "://") || status.HostIP != "" {
			t.Fatalf("before: container %q, host %q", id, status.HostIP)
		}
		s.node.Probe("a", "app", lifecycle.Probe{ContainerID: id, Started: &started})
		s.after(time.Second)
		// An agent that starts later knows of the probe only what was told.
		s.node.Probe("a", "app", lifecycle.Probe{ContainerID: id})
		known.Store(true)
		told := len(s.Statuses("a"))
		s.after(2 * time.Second)
		status = s.Last("a").Status
		if got := status.ContainerStatuses[0].ContainerID; got != "containerd://"+id || status.HostIP != "10.0.0.7" {
			t.Errorf("after: container %q, host %q", got, status.HostIP)
		}
		for _, update := range s.Statuses("a")[told:] {
			if st := update.Status.ContainerStatuses[0]; st.RestartCount != 0 || !*st.Started {
				t.Errorf("flaps to %+v", st)
			}
		}
		moved.Store(true) // as many as before, but others
		s.after(2 * time.Second)
		if status = s.Last("a").Status; status.HostIP != "10.0.0.8" {
			t.Errorf("the node moved: host %q", status.HostIP)
		}
		offline.Store(true)
		s.after(time.Minute)
		if status = s.Last("a").Status; status.HostIP != "10.0.0.8" || status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("no network: host %q, container %+v", status.HostIP, status.ContainerStatuses[0])
		}
	})
}

// picky refuses what a label asks it to.
type picky struct{ actortest.Specs }

func (picky) Check(pod *corev1.Pod) error {
	if pod.Spec.HostPID {
		return errors.New("spec.hostPID: not on this node")
	}
	return nil
}

// TestChangeThatWouldNotBeAdmitted: under one UID the pod stays as it was.
func TestChangeThatWouldNotBeAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) { s.parts.Specs = picky{} })
		image := func(name string) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Spec.Containers[0].Image = name }
		}
		s.set(static("a", "a"))
		s.after(time.Second)
		s.set(static("a", "a", image("registry.test/app:2"), func(p *corev1.Pod) { p.Spec.HostPID = true }))
		s.after(time.Minute)
		if n := s.Calls(runtimetest.MethodStartContainer); n != 1 {
			t.Errorf("%d starts: the refused change was acted on", n)
		}
		if view, _ := s.node.Pod("a"); view.Pod.Spec.HostPID || view.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %+v", view)
		}
		if events := s.Events("a"); events[len(events)-1] != "UnsupportedField" {
			t.Errorf("events %q", events)
		}
		s.set(static("a", "a", image("registry.test/app:2")))
		s.after(time.Minute)
		if view, _ := s.node.Pod("a"); view.Pod.Spec.Containers[0].Image != "registry.test/app:2" {
			t.Error("the next change was not acted on")
		}
		s.wantRunning("a", 1)
	})
}

// TestRunningPodThatIsRefused: what an agent before this one, or the stock
// kubelet, has started runs on, until a change or its end.
func TestRunningPodThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		refused := static("a", "a", func(p *corev1.Pod) { p.Spec.HostPID = true })
		s.set(refused)
		s.after(time.Second)
		s.end()
		s.parts.Specs = picky{}
		s.start()
		s.set(refused)
		s.after(time.Hour)
		s.wantRunning("a", 1)
		if view, _ := s.node.Pod("a"); view.Status.Phase != corev1.PodRunning {
			t.Errorf("status %+v", view.Status)
		}
		s.set(static("a", "a")) // as the agent can run it
		s.after(time.Minute)
		s.wantRunning("a", 1)
		s.Exit("a", "app", 1)
		s.after(time.Minute)
		s.wantRunning("a", 1)
		if n := s.Calls(runtimetest.MethodStartContainer); n != 2 {
			t.Errorf("%d starts, want one more after the exit", n)
		}
	})
}

// quitter is an engine whose calls end with their context, as the CRI's do: a
// stop that is called off does not kill.
type quitter struct{ *actortest.Bench }

func (e quitter) StopContainer(ctx context.Context, req podactor.StopContainerRequest) error {
	select {
	case <-time.After(req.Grace + 500*time.Millisecond): // a runtime is not that exact
		return e.Bench.StopContainer(ctx, podactor.StopContainerRequest{ContainerID: req.ContainerID})
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestDrainKillsInTime(t *testing.T) {
	for _, limit := range []time.Duration{5 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, func(s *stage) {
				s.parts.Engine = quitter{s.Bench}
				s.cfg.DrainOnStop, s.cfg.DrainTimeout = true, limit
			})
			s.set(static("a", "a", func(p *corev1.Pod) {
				grace := int64(3600)
				p.Spec.TerminationGracePeriodSeconds = &grace
			}))
			s.after(time.Second)
			begun := time.Now()
			s.end()
			s.wantRunning("a", 0)
			if took := time.Since(begun); took > limit {
				t.Errorf("the drain took %v, limit %v", took, limit)
			}
		})
	}
}

var _ node.Watcher = nameless{}
