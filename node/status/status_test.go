package status_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/podapitest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/status"
	"nodekit.dev/runtime/runtimetest"
)

func TestStatusReachesTheServerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			p.Status.QOSClass = corev1.PodQOSBurstable
		}))
		synctest.Wait()
		web := s.wantPhase("web", corev1.PodRunning)
		if ready := condition(web, corev1.PodReady); ready.Status != corev1.ConditionTrue || ready.ObservedGeneration != 1 {
			t.Errorf("ready %+v", ready)
		}
		if c := condition(web, corev1.PodReadyToStartContainers); c.Status != corev1.ConditionTrue {
			t.Errorf("ready to start containers: %+v", c)
		}
		st := web.Status
		if st.ObservedGeneration != 1 || st.StartTime == nil || st.HostIP != "10.0.0.1" || len(st.HostIPs) != 1 || st.PodIP == "" || len(st.PodIPs) != 1 {
			t.Errorf("status %+v", st)
		}
		c := st.ContainerStatuses[0]
		if c.State.Running == nil || !c.Ready || c.Resources == nil || c.AllocatedResources.Cpu().String() != "100m" ||
			!strings.HasPrefix(c.ContainerID, "containerd://") || c.ImageID == "" {
			t.Errorf("container %+v", c)
		}
		if st.AllocatedResources.Cpu().String() != "100m" || st.Resources.Requests.Cpu().String() != "100m" {
			t.Errorf("pod resources %+v %+v", st.AllocatedResources, st.Resources)
		}
		for _, w := range s.api.Writes() {
			if w.Verb != "PATCH" || w.Code != http.StatusOK || !strings.Contains(w.Body, `"uid":"u1"`) {
				t.Errorf("wrote %+v", w)
			}
		}
	})
}

func TestDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("app", runtimetest.Behaviour{TermDelay: 7 * time.Second})
		s.api.Create(pod("u1", "web"))
		synctest.Wait()
		s.api.Delete("default", "web", 30)
		s.after(time.Second)
		web := s.wantPhase("web", corev1.PodRunning) // it may still run
		if ready := condition(web, corev1.PodReady); ready.Status != corev1.ConditionFalse {
			t.Errorf("ready %+v", ready)
		}
		mark := s.mark()
		s.after(10 * time.Second)
		s.wantGone("web")
		s.CheckEmpty()
		wrote := s.wrote(mark)
		if wrote[len(wrote)-1] != "DELETE web" || len(wrote) != 2 {
			t.Errorf("wrote %q", wrote)
		}
		events := s.api.Events()
		if last := events[len(events)-2].Pod; last.Status.Phase != corev1.PodSucceeded && last.Status.Phase != corev1.PodFailed {
			t.Errorf("phase before the end: %s", last.Status.Phase)
		}
	})
}

func TestForceDeletedPodIsStoppedAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "web"))
		synctest.Wait()
		mark := s.mark()
		s.api.Delete("default", "web", 0)
		s.after(time.Minute)
		s.CheckEmpty()
		if wrote := s.wrote(mark); len(wrote) != 0 {
			t.Errorf("wrote %q to a pod that is gone", wrote)
		}
		if pods := s.agent.node.Pods(); len(pods) != 0 {
			t.Errorf("pods %+v", pods)
		}
	})
}

// An API server that has just started may answer a deletion that it does not
// know the pod, which it has.
func TestDeletionIsTriedUntilThePodIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("a", "web"))
		s.after(time.Minute)
		s.wantPhase("web", corev1.PodRunning)
		s.api.Refuse(func(req *http.Request) (int, string) {
			if req.Method == http.MethodDelete {
				return http.StatusNotFound, "NotFound"
			}
			return 0, ""
		})
		s.api.Delete("default", "web", 30)
		s.after(time.Minute)
		s.wantPhase("web", corev1.PodSucceeded)
		s.api.Refuse(nil)
		s.after(time.Minute)
		s.wantGone("web")
	})
}

func TestFinalizerHoldsAPodAndIsNotFought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "web", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/x"} }))
		synctest.Wait()
		s.api.Delete("default", "web", 1)
		s.after(time.Hour)
		s.CheckEmpty()
		deletes := 0
		for _, w := range s.api.Writes() {
			if w.Verb == "DELETE" {
				deletes++
			}
		}
		if deletes != 1 {
			t.Errorf("%d deletes", deletes)
		}
	})
}

func TestPodMadeAnewUnderItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("app", runtimetest.Behaviour{TermDelay: 20 * time.Second})
		s.api.Create(pod("u1", "web"))
		synctest.Wait()
		s.api.Delete("default", "web", 0)
		s.api.Create(pod("u2", "web"))
		s.after(time.Second)
		s.wantPhase("web", corev1.PodRunning)
		if n := s.Running(t, "u1"); n != 1 {
			t.Fatalf("%d containers of the old pod run; the test wants it to be stopping", n)
		}
		s.after(time.Minute)
		web := s.wantPhase("web", corev1.PodRunning)
		if web.UID != "u2" || len(s.Seen(t, "u1").Containers) != 0 {
			t.Errorf("pod %s, old %+v", web.UID, s.Seen(t, "u1"))
		}
		for _, w := range s.api.Writes() {
			if w.Code != http.StatusOK {
				t.Errorf("wrote %+v", w)
			}
		}
	})
}

func TestPhaseIsTerminalOnlyWhenNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("app", runtimetest.Behaviour{TermDelay: 9 * time.Second})
		deadline := int64(60)
		s.api.Create(pod("u1", "job", policy(corev1.RestartPolicyNever), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &deadline }))
		s.after(65 * time.Second)
		s.wantPhase("job", corev1.PodRunning)
		s.after(10 * time.Second)
		if job := s.wantPhase("job", corev1.PodFailed); job.Status.Reason != "DeadlineExceeded" {
			t.Errorf("status %+v", job.Status)
		}
		if n := s.Running(t, "u1"); n != 0 {
			t.Errorf("%d containers run", n)
		}
	})
}

// The whole point: an agent that is killed and started again says nothing new.
func TestRestartWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("done", runtimetest.Behaviour{RunFor: time.Second})
		s.Script("flaky", runtimetest.Behaviour{RunFor: 30 * time.Second, ExitCode: 3})
		probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
		s.api.Create(pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.Containers[0].ReadinessProbe, p.Spec.Containers[0].StartupProbe = probe, probe
			p.Spec.InitContainers = []corev1.Container{{Name: "done", Image: "registry.test/app:1"}}
		}))
		s.api.Create(pod("u2", "job", policy(corev1.RestartPolicyNever), func(p *corev1.Pod) { p.Spec.Containers[0].Name = "done" }))
		s.api.Create(pod("u3", "flaky", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "flaky" }))
		s.manifest(manifestPod("s1", "static", func(p *corev1.Pod) {
			p.Spec.Containers[0].ReadinessProbe, p.Spec.Containers[0].StartupProbe = probe, probe
		}))
		s.after(5 * time.Second)
		for _, uid := range []string{"u1", "s1"} {
			s.probe(uid, true)
		}
		s.after(10 * time.Minute)
		mirror := s.wantPhase("static", corev1.PodRunning)
		before := map[string]string{}
		for _, uid := range []string{"u1", "u2", "s1"} {
			before[uid] = s.history(uid, mirror)
		}
		s.wantPhase("job", corev1.PodSucceeded)

		for range 3 {
			mark := s.mark()
			s.restart()
			s.after(10 * time.Second) // the probers have not spoken yet
			for _, uid := range []string{"u1", "s1"} {
				s.probe(uid, true)
			}
			s.after(time.Second)
			if wrote := s.wrote(mark); slices.ContainsFunc(wrote, func(w string) bool { return !strings.HasSuffix(w, " flaky") }) {
				t.Errorf("after a restart: wrote %q: %+v", wrote, s.api.Writes()[mark:])
			}
			s.after(7 * time.Minute)
		}
		for _, uid := range []string{"u1", "u2", "s1"} {
			if after := s.history(uid, mirror); after != before[uid] {
				t.Errorf("%s: conditions before %q, after %q", uid, before[uid], after)
			}
		}
		if n := s.Running(t, "u2"); n != 0 {
			t.Error("a pod that had ended runs again")
		}
	})
}

func TestFinishedPodsStayFinished(t *testing.T) {
	for name, edit := range map[string]func(*corev1.PodStatus){
		"succeeded": func(st *corev1.PodStatus) {
			st.Phase = corev1.PodSucceeded
			st.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://x", Reason: "Completed"},
			}, ContainerID: "containerd://x"}}
		},
		"rejected": func(st *corev1.PodStatus) {
			st.Phase, st.Reason, st.Message = corev1.PodFailed, "OutOfcpu", "Pod was rejected: no CPU"
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(s *stage) {
					s.api.Create(pod("u1", "job", policy(corev1.RestartPolicyAlways), func(p *corev1.Pod) { edit(&p.Status) }))
				})
				s.after(time.Hour)
				job := s.api.Pod("default", "job")
				want := corev1.PodStatus{}
				edit(&want)
				if job.Status.Phase != want.Phase || job.Status.Reason != want.Reason || job.Status.Message != want.Message ||
					len(job.Status.ContainerStatuses) != len(want.ContainerStatuses) {
					t.Errorf("status %+v", job.Status)
				}
				if n := s.Calls(runtimetest.MethodRunSandbox); n != 0 {
					t.Errorf("%d sandboxes", n)
				}
				s.api.Delete("default", "job", 30)
				s.after(time.Second)
				s.wantGone("job")
			})
		})
	}
}

func TestDeletedWhileTheAgentWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "force"))
		s.api.Create(pod("u2", "grace"))
		synctest.Wait()
		s.stop()
		s.api.Delete("default", "force", 0)
		s.api.Delete("default", "grace", 30)
		s.api.Create(pod("u3", "never", func(p *corev1.Pod) {}))
		s.api.Delete("default", "never", 30)
		s.after(time.Hour)
		s.start()
		s.after(time.Minute)
		s.wantGone("force")
		s.wantGone("grace")
		s.wantGone("never")
		s.CheckEmpty()
	})
}

func TestServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("flaky", runtimetest.Behaviour{RunFor: 45 * time.Second, ExitCode: 3})
		s.api.Create(pod("u1", "web"))
		s.api.Create(pod("u2", "flaky", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "flaky" }))
		synctest.Wait()
		before := s.transitions("u1", corev1.PodReady) // with or without the False of its first moment
		s.api.Away(true)
		mark := s.mark()
		s.after(10 * time.Minute)
		if tries := len(s.wrote(mark)); tries == 0 || tries > 200 {
			t.Errorf("%d tries in 10 minutes", tries)
		}
		local, _ := s.agent.node.Pod("u2")
		s.api.Away(false)
		s.after(15 * time.Second)
		flaky := s.api.Pod("default", "flaky")
		if got, want := flaky.Status.ContainerStatuses[0].RestartCount, local.Status.ContainerStatuses[0].RestartCount; got < want || want == 0 {
			t.Errorf("restarts: the server has %d, the node %d", got, want)
		}
		if got := s.transitions("u1", corev1.PodReady); got != before || !strings.Contains(got, "True@") {
			t.Errorf("ready of web: %s, before the server was away: %s", got, before)
		}
	})
}

func TestLatestWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Refuse(func(req *http.Request) (int, string) {
			if req.Method == http.MethodPatch {
				return -1, "connection reset"
			}
			return 0, ""
		})
		s.api.Create(pod("u1", "web"))
		s.after(10 * time.Second)
		s.api.Refuse(nil)
		mark := s.mark()
		s.after(time.Minute)
		s.wantPhase("web", corev1.PodRunning)
		if wrote := s.wrote(mark); len(wrote) != 1 {
			t.Errorf("wrote %q", wrote)
		}
	})
}

func TestConditionsOfOthers(t *testing.T) {
	const gate = "example.com/load-balancer"
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
		}))
		synctest.Wait()
		web := s.wantPhase("web", corev1.PodRunning)
		if c := condition(web, corev1.PodReady); c.Status != corev1.ConditionFalse || c.Reason != "ReadinessGatesNotReady" {
			t.Errorf("ready %+v", c)
		}
		s.api.Update("default", "web", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue, Reason: "Mine"})
		})
		synctest.Wait()
		web = s.api.Pod("default", "web")
		if c := condition(web, corev1.PodReady); c.Status != corev1.ConditionTrue {
			t.Errorf("ready %+v", c)
		}
		if c := condition(web, gate); c.Reason != "Mine" {
			t.Errorf("gate %+v", c)
		}
		if strings.Contains(s.api.Writes()[s.mark()-1].Body, gate) {
			t.Error("the node wrote a condition that is not its own")
		}
	})
}

func TestWhatOthersWriteOverIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "web"))
		synctest.Wait()
		s.api.Update("default", "web", func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.PodIPs = "6.6.6.6", []corev1.PodIP{{IP: "6.6.6.6"}}
			p.Status.ContainerStatuses[0].RestartCount = 7
			for i := range p.Status.Conditions {
				if p.Status.Conditions[i].Type == corev1.PodReady {
					p.Status.Conditions[i].Status, p.Status.Conditions[i].Reason = corev1.ConditionFalse, "NodeNotReady"
				}
			}
		})
		synctest.Wait()
		web := s.api.Pod("default", "web")
		if web.Status.PodIP == "6.6.6.6" || len(web.Status.PodIPs) != 1 || web.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("status %+v", web.Status)
		}
		if c := condition(web, corev1.PodReady); c.Status != corev1.ConditionTrue || c.Reason != "" {
			t.Errorf("ready %+v", c)
		}
	})
}

func TestEndedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "web"))
		synctest.Wait()
		s.api.Update("default", "web", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "NodeLost"
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
			})
		})
		s.after(time.Minute)
		web := s.wantPhase("web", corev1.PodFailed)
		if c := condition(web, corev1.DisruptionTarget); web.Status.Reason != "NodeLost" || c.Reason != "DeletionByPodGC" {
			t.Errorf("status %+v", web.Status)
		}
		if c := condition(web, corev1.PodReady); c.Status != corev1.ConditionFalse {
			t.Errorf("ready %+v", c)
		}
		if n := s.Running(t, "u1"); n != 0 {
			t.Errorf("%d containers run of a pod that has ended", n)
		}
		s.restart()
		s.after(time.Minute)
		s.wantPhase("web", corev1.PodFailed)
		if n := s.Running(t, "u1"); n != 0 {
			t.Errorf("%d containers run of a pod that has ended", n)
		}
	})
}

func TestServerThatDoesNotKeepAField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.DropFields("allocatedResources", "resources", "hostIPs")
		s.api.Create(pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		}))
		s.after(time.Hour)
		s.wantPhase("web", corev1.PodRunning)
		if n := len(s.api.Writes()); n > 10 {
			t.Errorf("%d writes", n)
		}
		s.api.Delete("default", "web", 1)
		s.after(time.Minute)
		s.wantGone("web")
	})
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*status.Config){
		"NodeName":    func(c *status.Config) { c.NodeName = "" },
		"MaxCalls":    func(c *status.Config) { c.MaxCalls = 0 },
		"CallTimeout": func(c *status.Config) { c.CallTimeout = 0 },
		"FlushTime":   func(c *status.Config) { c.FlushTime = -1 },
		"RetryBase":   func(c *status.Config) { c.RetryBase = 0 },
		"RetryMax":    func(c *status.Config) { c.RetryMax = 1 },
	} {
		cfg := status.DefaultConfig("n")
		change(&cfg)
		if _, err := status.New(cfg, status.Parts{API: podapitest.New().Client()}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := status.New(status.DefaultConfig("n"), status.Parts{}); err == nil {
		t.Error("no client: no error")
	}
	w, err := status.New(status.DefaultConfig("n"), status.Parts{API: podapitest.New().Client()})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Attach") {
		t.Errorf("Run before Attach: %v", err)
	}
}

// What the node says last, as when it drains, is written although the writer was
// told to end, but not for long.
func TestWhatIsSaidLastIsWritten(t *testing.T) {
	for name, hangs := range map[string]bool{"the server answers": false, "the server hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := podapitest.New()
				web := api.Create(pod("u1", "web"))
				cfg := status.DefaultConfig("worker-1")
				w, err := status.New(cfg, status.Parts{API: api.Client()})
				if err != nil {
					t.Fatal(err)
				}
				w.Attach(quietNode{})
				if hangs {
					api.Away(true)
				}
				w.PodSeen(web)
				w.PodStatus(node.StatusUpdate{
					UID: "u1", Namespace: "default", Name: "web", Pod: web, Phase: lifecycle.Cleaning,
					Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Terminated"},
				})
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				began := time.Now()
				if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Run: %v", err)
				}
				if took := time.Since(began); took > cfg.FlushTime {
					t.Errorf("took %v", took)
				}
				if got := api.Pod("default", "web").Status.Phase == corev1.PodFailed; got == hangs {
					t.Errorf("written: %v", got)
				}
			})
		})
	}
}
