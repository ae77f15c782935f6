package podactor_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// handler runs hooks that take a while, and remembers them.
type handler struct {
	takes time.Duration
	err   error
	ran   list[podactor.HandlerRequest]
}

func (h *handler) RunHandler(ctx context.Context, req podactor.HandlerRequest) error {
	h.ran.add(req)
	select {
	case <-time.After(h.takes):
		return h.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func withPreStop(p *corev1.Pod) {
	p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
		Exec: &corev1.ExecAction{Command: []string{"drain"}},
	}}
}

func TestPreStopSharesTheGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		grace, hook time.Duration
		hookErr     error
		want        time.Duration // grace left for the signal
		event       bool
	}{
		"quick":            {grace: 30 * time.Second, hook: 10 * time.Second, want: 20 * time.Second},
		"eats it nearly":   {grace: 30 * time.Second, hook: 29 * time.Second, want: 2 * time.Second},
		"longer than that": {grace: 30 * time.Second, hook: time.Hour, want: 2 * time.Second, event: true},
		"fails": {
			grace: 30 * time.Second, hook: time.Second, hookErr: errors.New("exit 1"), want: 29 * time.Second, event: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{takes: tc.hook, err: tc.hookErr}
				var stops list[time.Duration]
				s := newStage(t, actortest.Pod("u1", "web", withPreStop), func(s *stage) {
					s.parts.Handlers = h
					s.parts.Engine = engineFunc{Bench: s.Bench, beforeStop: func(req podactor.StopContainerRequest) {
						stops.add(req.Grace)
					}}
				})
				s.after(time.Second)
				s.stop(lifecycle.StopDeleted, tc.grace)
				s.gone(tc.grace + 5*time.Second)
				if got := stops.get(); !slices.Equal(got, []time.Duration{tc.want}) {
					t.Errorf("stopped with %v, want %v", got, tc.want)
				}
				if ran := h.ran.get(); len(ran) != 1 || ran[0].ContainerID == "" || len(ran[0].PodIPs) != 1 {
					t.Errorf("hooks that ran: %+v", ran)
				}
				if got := slices.Contains(s.Events("u1"), "FailedPreStopHook"); got != tc.event {
					t.Errorf("event FailedPreStopHook: %v, want %v", got, tc.event)
				}
			})
		})
	}
}

func TestGraceThatShrinksCutsTheHookShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: time.Hour}
		s := newStage(t, actortest.Pod("u1", "web", withPreStop), func(s *stage) {
			s.parts.Handlers = h
			s.Script("app", runtimetest.Behaviour{IgnoresTERM: true})
		})
		s.after(time.Second)
		s.stop(lifecycle.StopDeleted, 10*time.Minute)
		s.after(time.Minute)
		s.stop(lifecycle.StopDeleted, 5*time.Second)
		s.gone(10 * time.Second)
	})
}

func TestPreStopThatEndedRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: time.Second}
		s := newStage(t, actortest.Pod("u1", "web", withPreStop), func(s *stage) {
			s.parts.Handlers = h
			s.Fault(runtimetest.Fault{Kind: runtimetest.Fail, Method: runtimetest.MethodStopContainer, Times: 3})
		})
		s.after(time.Second)
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(30 * time.Second)
		if n := len(h.ran.get()); n != 1 {
			t.Errorf("the hook ran %d times", n)
		}
	})
}

func TestOrphanIsStoppedByWhatIsWrittenOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{takes: 3 * time.Second}
		hooks := &hookLog{}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Handlers = h
			s.parts.Hooks = hooks
			s.parts.Specs = annotated{}
		})
		s.after(time.Second)
		s.kill()
		<-s.done
		s.want.Pod = nil
		s.want.Stop = &lifecycle.Stop{Reason: lifecycle.StopOrphaned, At: time.Now(), Grace: 30 * time.Second}
		s.start()
		s.gone(10 * time.Second)
		if ran := h.ran.get(); len(ran) != 1 || ran[0].Handler.HTTPGet.Path != "/drain" ||
			ran[0].Pod.Spec.Containers[0].Ports[0].Name != "web" || ran[0].Pod.Name != "web" {
			t.Errorf("hooks that ran: %+v", ran)
		}
	})
}

// annotated writes a preStop hook on every container.
type annotated struct{ actortest.Specs }

func (a annotated) Container(req podactor.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	config, err := a.Specs.Container(req)
	config.Annotations[runtime.AnnotationPreStopHandler] = `{"httpGet":{"path":"/drain","port":"web"}}`
	config.Annotations[runtime.AnnotationContainerPorts] = `[{"name":"web","containerPort":80}]`
	return config, err
}

// hookLog is a vendor's hook that notes its calls.
type hookLog struct {
	calls   list[string]
	started func() error
}

func (h *hookLog) Prepare(_ context.Context, pod *corev1.Pod) error {
	h.calls.add("Prepare " + pod.Name)
	return nil
}

func (h *hookLog) Started(_ context.Context, pod *corev1.Pod, container, id string) error {
	h.calls.add("Started " + pod.Name + "/" + container)
	if id == "" {
		return errors.New("no container ID")
	}
	if h.started != nil {
		return h.started()
	}
	return nil
}

func (h *hookLog) Stopping(_ context.Context, pod *corev1.Pod) error {
	h.calls.add("Stopping " + pod.Name)
	return nil
}

func (h *hookLog) Cleanup(_ context.Context, pod *corev1.Pod) error {
	h.calls.add("Cleanup " + pod.Name)
	return nil
}

func TestHooksSeeTheWholeLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := &hookLog{}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Hooks = hooks })
		s.after(time.Second)
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Second)
		if events := s.Events("u1"); !slices.Equal(events, []string{"Created", "Started", "Killing"}) {
			t.Errorf("events %q", events)
		}
		want := []string{"Prepare web", "Started web/app", "Stopping web", "Cleanup web"}
		if got := hooks.calls.get(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

func TestStartedHookThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int32
		hooks := &hookLog{started: func() error {
			if tries.Add(1) < 4 {
				return errors.New("not yet")
			}
			return nil
		}}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) { s.parts.Hooks = hooks })
		s.after(6 * time.Second)
		if n := tries.Load(); n != 3 {
			t.Errorf("%d tries after 6 s, want 3", n)
		}
		if !ready(s.Last("u1")) {
			t.Errorf("the pod waits for the hook: %+v", s.Last("u1").Status)
		}
		s.after(time.Hour)
		if n := tries.Load(); n != 4 {
			t.Errorf("%d tries, want 4", n)
		}
		if n := s.Calls(runtimetest.MethodStartContainer); n != 1 {
			t.Errorf("%d starts, want 1", n)
		}
	})
}

// TestStartedHookThatAlwaysFailsHoldsNothing: neither the containers that come
// after it nor the end of the pod.
func TestStartedHookThatAlwaysFailsHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := &hookLog{started: func() error { return errors.New("no space left on device") }}
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
			init := p.Spec.Containers[0]
			init.Name = "init"
			p.Spec.InitContainers = []corev1.Container{init}
		})
		s := newStage(t, pod, func(s *stage) {
			s.Script("init", runtimetest.Behaviour{RunFor: time.Second})
			s.parts.Hooks = hooks
		})
		s.after(time.Minute)
		s.wantRunning(1)
		if !ready(s.Last("u1")) {
			t.Errorf("not ready: %+v", s.Last("u1").Status)
		}
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Second)
		calls := hooks.calls.get()
		stopping := slices.Index(calls, "Stopping web")
		if stopping < 0 || slices.Contains(calls[stopping:], "Started web/app") {
			t.Errorf("calls %q", calls)
		}
	})
}

// TestStartedHookOfAnAgentThatDied: its container runs, and nobody told.
func TestStartedHookOfAnAgentThatDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"))
		s.after(time.Second)
		s.kill()
		<-s.done
		hooks := &hookLog{}
		s.parts.Hooks = hooks
		s.start()
		s.after(time.Hour)
		s.wantRunning(1)
		if got := hooks.calls.get(); !slices.Equal(got, []string{"Prepare web", "Started web/app"}) {
			t.Errorf("calls %q", got)
		}
	})
}

func TestAllocatorIsAskedLastAndGetsBackWhatItGave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls list[string]
		alloc := allocator{calls: &calls}
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Admitters = []podactor.Admitter{
				admitFunc(func() (lifecycle.Admission, error) {
					calls.add("first")
					if len(calls.get()) == 1 {
						return lifecycle.Admission{}, errors.New("not reachable")
					}
					return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
				}),
			}
			s.parts.Allocator = alloc
		})
		s.after(10 * time.Second)
		s.wantRunning(1)
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Second)
		got, want := calls.get(), []string{"first", "first", "allocate"}
		if !slices.Equal(got[:3], want) || got[len(got)-1] != "release u1" {
			t.Errorf("calls %q", got)
		}
	})
}

type admitFunc func() (lifecycle.Admission, error)

func (f admitFunc) Admit(context.Context, podactor.AdmitRequest) (lifecycle.Admission, error) {
	return f()
}

type allocator struct{ calls *list[string] }

func (a allocator) Admit(context.Context, podactor.AdmitRequest) (lifecycle.Admission, error) {
	a.calls.add("allocate")
	return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
}

func (a allocator) Release(_ context.Context, uid string) error {
	a.calls.add("release " + uid)
	return nil
}

func TestRejectedPodFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.parts.Admitters = []podactor.Admitter{admitFunc(func() (lifecycle.Admission, error) {
				return lifecycle.Admission{Verdict: lifecycle.VerdictReject, Reason: "OutOfcpu", Message: "too big"}, nil
			})}
		})
		s.after(time.Minute)
		if last := s.Last("u1").Status; last.Phase != corev1.PodFailed || last.Reason != "OutOfcpu" || last.Message != "Pod was rejected: too big" {
			t.Errorf("status %+v", last)
		}
		if n := s.Calls(runtimetest.MethodRunSandbox); n != 0 {
			t.Errorf("%d sandboxes", n)
		}
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Second)
	})
}

func TestTerminationLogIsWhereTheStockKubeletHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made list[string]
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
		})
		s := newStage(t, pod, func(s *stage) {
			s.Script("app", runtimetest.Behaviour{RunFor: time.Second, ExitCode: 1}, runtimetest.Behaviour{})
			s.parts.Specs = logSpecs{logs: &made}
		})
		s.after(time.Minute)
		logs := made.get()
		if len(logs) != 2 || logs[0] == logs[1] {
			t.Fatalf("termination logs %q, want one for each of two attempts", logs)
		}
		for _, path := range logs {
			info, err := os.Stat(path)
			if err != nil || info.Size() != 0 || info.Mode().Perm() != 0o666 {
				t.Errorf("%s: %v, %v", path, info, err)
			}
			dir, file := filepath.Split(path)
			if !strings.HasSuffix(dir, "/pods/u1/containers/app/") || len(file) != 8 || strings.Trim(file, "0123456789abcdef") != "" {
				t.Errorf("termination log at %s", path)
			}
		}
	})
}

type logSpecs struct {
	actortest.Specs
	logs *list[string]
}

func (l logSpecs) Container(req podactor.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	l.logs.add(req.TerminationLog)
	return l.Specs.Container(req)
}

func TestTraceReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"))
		s.after(time.Second)
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(time.Second)
		trace, err := s.actor.Trace()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(trace)
		if err != nil {
			t.Fatal(err)
		}
		var read podactor.Trace
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if read.Version != podactor.TraceVersion || len(read.Entries) < 8 || read.UID != "u1" {
			t.Fatalf("trace of version %d with %d entries", read.Version, len(read.Entries))
		}
		kinds := map[lifecycle.Kind]bool{}
		for i, entry := range read.Entries {
			plan, same, err := entry.Replay(lifecycle.Decide)
			if !same || err != nil {
				t.Errorf("entry %d: %v, replayed %+v, recorded %+v", i, err, plan, entry.Plan)
			}
			for _, a := range entry.Plan.Do {
				kinds[a.Kind] = true
			}
		}
		for _, kind := range []lifecycle.Kind{lifecycle.Admit, lifecycle.RunSandbox, lifecycle.StartContainer, lifecycle.RemoveSandbox} {
			if !kinds[kind] {
				t.Errorf("%s is not in the trace", kind)
			}
		}
	})
}

func TestTraceIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, actortest.Pod("u1", "web"), func(s *stage) {
			s.Script("app", runtimetest.Behaviour{RunFor: time.Second, ExitCode: 1})
		})
		s.after(time.Hour) // crash-loops
		s.after(time.Minute)
		trace, err := s.actor.Trace()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(trace.Entries), podactor.DefaultConfig().TraceSize; got < want || got >= 2*want {
			t.Errorf("%d entries, want %d or more, but not twice as many", got, want)
		}
		if packed, fresh := s.actor.TraceBytes(); packed > 20_000 || fresh > 0 {
			t.Errorf("trace of one pod takes %d bytes and %d entries unpacked, too much for 50 pods", packed, fresh)
		} else {
			t.Logf("trace takes %d bytes for %d entries", packed, len(trace.Entries))
		}
	})
}
