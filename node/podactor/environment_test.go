package podactor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// envFunc is an Environment.
type envFunc func(ctx context.Context, req podactor.EnvironmentRequest) (podactor.EnvironmentResult, error)

func (f envFunc) Environment(ctx context.Context, req podactor.EnvironmentRequest) (podactor.EnvironmentResult, error) {
	return f(ctx, req)
}

// needyName is the ConfigMap without which needySpecs makes no container.
const needyName = "cm"

// needySpecs keeps what it is asked for.
type needySpecs struct {
	actortest.Specs
	needs      bool
	sandboxes  *list[podactor.SandboxSpecRequest]
	containers *list[podactor.ContainerSpecRequest]
}

func newNeedySpecs(needs bool) needySpecs {
	return needySpecs{needs: needs, sandboxes: &list[podactor.SandboxSpecRequest]{}, containers: &list[podactor.ContainerSpecRequest]{}}
}

func (s needySpecs) Sandbox(req podactor.SandboxSpecRequest) (runtime.SandboxConfig, error) {
	s.sandboxes.add(req)
	return s.Specs.Sandbox(req)
}

func (s needySpecs) Container(req podactor.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	s.containers.add(req)
	if s.needs && req.Environment.ConfigMaps[needyName] == nil {
		return runtime.ContainerConfig{}, errors.New(`configmap "cm" not found`)
	}
	return s.Specs.Container(req)
}

// TestMissingObjectIsWaitedFor: the container says what is missing, and starts
// soon after the news of it, whatever its back-off has come to.
func TestMissingObjectIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there atomic.Bool
		var events list[podactor.PodEvent]
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Specs = newNeedySpecs(true)
			s.parts.Events = eventFunc(events.add)
			s.parts.Environment = envFunc(func(_ context.Context, req podactor.EnvironmentRequest) (result podactor.EnvironmentResult, err error) {
				if req.Pod.Name != "web" || req.Container != "app" || !req.Static {
					t.Errorf("asked for %+v", req)
				}
				if there.Load() {
					result.ConfigMaps = map[string]*corev1.ConfigMap{needyName: {}}
				}
				return result, nil
			})
		})
		s.after(10 * time.Minute)
		s.wantRunning(0)
		waiting := s.Last("u1").Status.ContainerStatuses[0].State.Waiting
		if waiting == nil || waiting.Reason != "CreateContainerConfigError" || waiting.Message != `configmap "cm" not found` {
			t.Errorf("waiting %+v", waiting)
		}
		if !slices.ContainsFunc(events.get(), func(e podactor.PodEvent) bool {
			return e.Type == lifecycle.EventWarning && e.Reason == "Failed" && e.Message == `Error: configmap "cm" not found` && e.Container == "app"
		}) {
			t.Errorf("events %+v", events.get())
		}
		there.Store(true)
		s.actor.News()
		s.after(2 * time.Second)
		s.wantRunning(1)
	})
}

// slowSandbox makes a sandbox once something has happened.
type slowSandbox struct {
	*actortest.Bench
	after <-chan struct{}
}

func (e slowSandbox) RunSandbox(ctx context.Context, req podactor.RunSandboxRequest) (podactor.RunSandboxResult, error) {
	select {
	case <-e.after:
		return e.Bench.RunSandbox(ctx, req)
	case <-ctx.Done():
		return podactor.RunSandboxResult{}, ctx.Err()
	}
}

// TestEnvironmentIsAskedForWhileTheSandboxIsMade: its time is not added to the
// start's, and an answer that takes too long does not hold the sandbox up.
func TestEnvironmentIsAskedForWhileTheSandboxIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		var calls atomic.Int32
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Engine = slowSandbox{s.Bench, asked}
			s.parts.Environment = envFunc(func(ctx context.Context, _ podactor.EnvironmentRequest) (podactor.EnvironmentResult, error) {
				if calls.Add(1) > 1 {
					return podactor.EnvironmentResult{}, nil
				}
				close(asked)
				<-ctx.Done() // the sandbox is made: nobody waits for this any more
				return podactor.EnvironmentResult{}, ctx.Err()
			})
		})
		s.after(time.Second)
		s.wantRunning(1)
		if got := calls.Load(); got != 2 {
			t.Errorf("asked %d times, want once with the sandbox and once with the start", got)
		}
	})
}

// classes and ranges are a RuntimeClasses and a UserNamespaces.
type classes struct{ sync.Map } // name to handler

func (c *classes) RuntimeHandler(_ context.Context, req podactor.RuntimeHandlerRequest) (podactor.RuntimeHandlerResult, error) {
	handler, known := c.Load(req.Class)
	if !known {
		return podactor.RuntimeHandlerResult{}, errors.New("runtimeclass.node.k8s.io \"" + req.Class + "\" not found")
	}
	return podactor.RuntimeHandlerResult{Handler: handler.(string)}, nil
}

type ranges struct{ held atomic.Int32 }

func (r *ranges) UserNamespace(context.Context, podactor.UserNamespaceRequest) (podactor.UserNamespaceResult, error) {
	r.held.Store(1)
	return podactor.UserNamespaceResult{Namespace: runtime.UserNamespace{UIDs: []runtime.IDMapping{{HostID: 65536, Length: 65536}}}}, nil
}

func (r *ranges) Release(context.Context, string) error {
	r.held.Store(0)
	return nil
}

func TestHandlerAndUsersReachTheSpecs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		specs, users, known := newNeedySpecs(false), &ranges{}, &classes{}
		known.Store("kata", "kata-qemu")
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) { p.Spec.RuntimeClassName, p.Spec.HostUsers = new("kata"), new(false) })
		s := newStage(t, pod, func(s *stage) {
			s.parts.Specs, s.parts.UserNamespaces, s.parts.RuntimeClasses = specs, users, known
		})
		s.after(time.Second)
		s.wantRunning(1)
		for _, req := range specs.sandboxes.get() {
			if req.RuntimeHandler != "kata-qemu" || req.UserNamespace == nil || req.UserNamespace.UIDs[0].HostID != 65536 {
				t.Errorf("sandbox %+v", req)
			}
		}
		for _, req := range specs.containers.get() {
			if req.RuntimeHandler != "kata-qemu" || req.UserNamespace == nil {
				t.Errorf("container %+v", req)
			}
		}
		if users.held.Load() != 1 {
			t.Error("no range is held")
		}
		s.stop(lifecycle.StopDeleted, 0)
		s.gone(time.Minute)
		if users.held.Load() != 0 {
			t.Error("the range was not given back")
		}
	})
}

// TestUnknownRuntimeClass: the pod waits, as its event tells, and starts when the
// class is there. Its image is pulled meanwhile.
func TestUnknownRuntimeClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events list[podactor.PodEvent]
		known := &classes{}
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("kata") })
		s := newStage(t, pod, func(s *stage) {
			s.parts.RuntimeClasses = known
			s.parts.Events = eventFunc(events.add)
		})
		s.after(time.Second)
		const told = `Failed to create pod sandbox: runtimeclass.node.k8s.io "kata" not found`
		if !slices.ContainsFunc(events.get(), func(e podactor.PodEvent) bool { return e.Reason == "FailedCreatePodSandBox" && e.Message == told }) {
			t.Errorf("events %+v", events.get())
		}
		if w := s.Last("u1").Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ContainerCreating" {
			t.Errorf("waiting %+v", w)
		}
		known.Store("kata", "")
		s.after(2 * time.Minute)
		s.wantRunning(1)
	})
}

func debugContainer(target string) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{
		TargetContainerName: target,
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "registry.test/app:1", ImagePullPolicy: corev1.PullIfNotPresent,
		},
	}
}

// TestEphemeralContainerFindsItsTarget is what kubectl debug does.
func TestEphemeralContainerFindsItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		specs := newNeedySpecs(false)
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Specs = specs })
		s.after(time.Second)
		app := s.Seen(t, "u1").Containers[0].ID
		s.want.Pod = s.want.Pod.DeepCopy()
		s.want.Pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugContainer("app")}
		s.actor.Want(s.want)
		s.after(time.Second)
		s.wantRunning(2)
		got := specs.containers.get()
		if last := got[len(got)-1]; last.Container != "debug" || last.TargetID != app {
			t.Errorf("%s has target %q, want %q", last.Container, last.TargetID, app)
		}
		if first := got[0]; first.TargetID != "" {
			t.Errorf("%s has target %q", first.Container, first.TargetID)
		}
		status := s.Last("u1").Status
		if len(status.EphemeralContainerStatuses) != 1 || status.EphemeralContainerStatuses[0].State.Running == nil || status.Phase != corev1.PodRunning {
			t.Errorf("status %+v", status.EphemeralContainerStatuses)
		}
	})
}

func TestEphemeralContainerWithoutItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugContainer("nobody")}
		})
		s := newStage(t, pod)
		s.after(time.Second)
		s.wantRunning(1)
		w := s.Last("u1").Status.EphemeralContainerStatuses[0].State.Waiting
		if w == nil || w.Reason != "CreateContainerConfigError" || w.Message != "unable to find target container nobody" {
			t.Errorf("waiting %+v", w)
		}
	})
}

// tellingSpecs has something to say about each sandbox.
type tellingSpecs struct{ actortest.Specs }

func (s tellingSpecs) Sandbox(req podactor.SandboxSpecRequest) (runtime.SandboxConfig, error) {
	if req.Tell != nil {
		req.Tell(lifecycle.Event{Type: lifecycle.EventWarning, Reason: "DNSConfigForming", Message: "too many"})
	}
	return s.Specs.Sandbox(req)
}

// TestSandboxTellsOnce: the configuration is made for pulls and containers, too,
// and warns only where the sandbox is made.
func TestSandboxTellsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Specs = tellingSpecs{} })
		s.after(time.Second)
		count := 0
		for _, reason := range s.Events("u1") {
			if reason == "DNSConfigForming" {
				count++
			}
		}
		if count != 1 {
			t.Errorf("told %d times", count)
		}
	})
}

// patient admits when it is told to.
type patient struct {
	admit *atomic.Bool
	asked *atomic.Int32
}

func (p patient) Admit(_ context.Context, req podactor.AdmitRequest) (lifecycle.Admission, error) {
	p.asked.Add(1)
	if !req.Static {
		return lifecycle.Admission{}, errors.New("a static pod came as another")
	}
	if p.admit.Load() {
		return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
	}
	return lifecycle.Admission{Verdict: lifecycle.VerdictLater, Reason: "NodePorts", Message: "taken", RetryAt: time.Now().Add(time.Hour)}, nil
}

// TestNewsEndsTheWaitForAdmission: a pod that was told to come in an hour asks
// again at the news, and says meanwhile what it waits for.
func TestNewsEndsTheWaitForAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patient{&atomic.Bool{}, &atomic.Int32{}}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Admitters = []podactor.Admitter{p} })
		s.after(time.Minute)
		last := s.Last("u1")
		i := slices.IndexFunc(last.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == lifecycle.ConditionAdmitted })
		if !last.Later || i < 0 || last.Status.Conditions[i].Status != corev1.ConditionFalse || last.Status.Conditions[i].Reason != "NodePorts" {
			t.Errorf("later %v, conditions %+v", last.Later, last.Status.Conditions)
		}
		if got := p.asked.Load(); got != 1 {
			t.Errorf("asked %d times in a minute", got)
		}
		p.admit.Store(true)
		s.actor.News()
		s.after(2 * time.Second)
		s.wantRunning(1)
		if s.Last("u1").Later {
			t.Error("still said to wait")
		}
		s.stop(lifecycle.StopEvicted, 0)
		s.after(time.Minute)
		if !s.Last("u1").Released {
			t.Error("a pod that has ended still takes room")
		}
	})
}
