package lifecycle

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

func TestGraceOnlyShrinks(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.took()
	w.hold[StopContainer] = true
	w.stopNow(StopDeleted, 30*time.Second)
	w.settle()
	w.expect("RunHooksStopping", "StopContainer a 30s")

	w.now = w.now.Add(5 * time.Second)
	w.stopNow(StopDeleted, 60*time.Second)
	w.settle()
	w.expect() // longer: nothing changes

	w.stopNow(StopDeleted, 10*time.Second)
	w.settle()
	w.expect("cancel container/a", "StopContainer a 10s")

	w.now = w.now.Add(9 * time.Second)
	w.stopNow(StopDeleted, 0)
	w.settle()
	w.expect() // one second is left, less than the least grace
	w.land(KeyContainer("a"))
	w.settle()
	w.expectPhase(Finished, corev1.PodFailed)
}

func TestStopFailsAndIsTriedAgain(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.took()
	failures := 2
	w.fail = func(a Action) *Failure {
		if a.Kind == StopContainer && failures > 0 {
			failures--
			return &Failure{Reason: "KillContainerError", Message: "no answer", RetryAt: w.now.Add(2 * time.Second), Fatal: true}
		}
		return nil
	}
	w.stopNow(StopDeleted, 3*time.Second)
	w.settle()
	w.expect("RunHooksStopping", "StopContainer a 3s")
	w.after(4 * time.Second)
	w.expect("StopContainer a 1s", "StopContainer a 0s", "RemoveSandbox sb0", "RemoveCgroup", "RunHooksCleanup", "RemovePodDir")
}

func TestStoppedButRunsOnIsNoTightLoop(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.took()
	w.hold[StopContainer] = true
	w.stopNow(StopDeleted, 30*time.Second)
	w.settle()
	delete(w.busy, KeyContainer("a")) // it says it worked, and did not
	w.settle()
	w.expect("RunHooksStopping", "StopContainer a 30s")
	w.after(time.Second)
	w.expect("StopContainer a 29s")
}

func TestStopWhilePreparing(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v")))
	w.hold = map[Kind]bool{Pull: true, StartContainer: true, Mount: true}
	w.settle()
	w.took()
	w.stopNow(StopDeleted, time.Second)
	w.settle()
	w.expect("cancel image/a", "cancel volume/v", "RemoveSandbox sb0", "RemoveCgroup", "RunHooksCleanup", "RemovePodDir")
	w.expectPhase(Finished, corev1.PodFailed)
	w.expectState("a", "ContainerStatusUnknown(137)")
}

func TestCancelledStartMayHaveWon(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.hold[StartContainer] = true
	w.settle()
	w.took()
	w.stopNow(StopDeleted, 30*time.Second)
	plan := Decide(w.input())
	if len(plan.Do) != 0 || len(plan.Cancel) != 1 || plan.Mem.Phase != Stopping {
		t.Fatalf("plan %+v", plan)
	}
	w.mem = plan.Mem
	w.addContainer(w.newContainer("a", 0, "sb0")) // seen while the start is still in flight
	if plan = Decide(w.input()); len(plan.Do) != 1 || plan.Do[0].Kind != RunHooksStopping {
		t.Fatalf("plan %+v", plan)
	}
	w.mem = plan.Mem
	w.seen.StoppingDone = true
	delete(w.busy, KeyContainer("a"))
	w.settle()
	w.expect("StopContainer a 30s", "RemoveSandbox sb0", "RemoveCgroup", "RunHooksCleanup", "RemovePodDir")
}

func TestStoppingHookGetsNoMoreThanTheGrace(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.took()
	w.hold[RunHooksStopping], w.hold[StopContainer] = true, true
	w.stopNow(StopDeleted, 5*time.Second)
	w.settle()
	w.expect("RunHooksStopping")
	w.after(5 * time.Second)
	w.expect("StopContainer a 2s")
	if !w.busy[KeyContainer("a")].SkipPreStop {
		t.Fatal("a hook without time")
	}
}

func TestKeptThenDeleted(t *testing.T) {
	for _, reason := range []StopReason{StopEvicted, StopShutdown} {
		t.Run(string(reason), func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v")))
			w.settle()
			w.took()
			w.want.Stop = &Stop{Reason: reason, StatusReason: "Why", Message: "because", At: w.now, Grace: 3 * time.Second}
			w.hold[StopContainer] = true
			w.settle()
			w.expectPhase(Stopping, corev1.PodRunning)
			if w.plan.Status.Reason != "" || w.status("a").Ready {
				t.Fatalf("status %+v", w.plan.Status)
			}
			w.land(KeyContainer("a"))
			w.settle()
			w.expect("RunHooksStopping", "StopContainer a 3s", "StopSandbox sb0", "Unmount v", "RemoveCgroup")
			w.expectPhase(Cleaning, corev1.PodFailed)
			if s := w.plan.Status; s.Reason != "Why" || s.Message != "because" {
				t.Fatalf("status %+v", s)
			}
			if c := w.condition(corev1.DisruptionTarget); c.Status != corev1.ConditionTrue || c.Reason != "TerminationByKubelet" {
				t.Fatalf("condition %+v", c)
			}
			w.stopNow(StopDeleted, 0)
			w.settle()
			w.expect("RemoveSandbox sb0", "RunHooksCleanup", "RemovePodDir")
			w.expectPhase(Finished, corev1.PodFailed)
			if w.plan.Status.Reason != "Why" || w.condition(corev1.DisruptionTarget).Status != corev1.ConditionTrue {
				t.Fatalf("status %+v", w.plan.Status)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	seconds := int64(60)
	pod := newPod(corev1.RestartPolicyAlways, mainC("a"))
	pod.Spec.ActiveDeadlineSeconds = &seconds
	w := newWorld(t, pod)
	w.settle()
	w.restartAgent() // the start time is not forgotten
	w.settle()
	w.after(59 * time.Second)
	w.expectPhase(Running, corev1.PodRunning)
	w.after(time.Second)
	w.expectPhase(Cleaning, corev1.PodFailed)
	if s := w.plan.Status; s.Reason != "DeadlineExceeded" || s.Message != "Pod was active on the node longer than the specified deadline" {
		t.Fatalf("status %+v", s)
	}
	if !strings.Contains(strings.Join(w.event, ";"), "DeadlineExceeded: Pod was active") {
		t.Fatalf("events %q", w.event)
	}
}

func TestOrphan(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		asked       time.Duration
		want        string
	}{
		"termination grace": {map[string]string{runtime.AnnotationPodTerminationGracePeriod: "7"}, 0, "7s"},
		"deletion goes first": {map[string]string{runtime.AnnotationPodTerminationGracePeriod: "7",
			runtime.AnnotationPodDeletionGracePeriod: "4"}, 9 * time.Second, "4s"},
		"asked": {nil, 9 * time.Second, "9s"},
		"rule":  {nil, 0, "30s"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.want.Stop = &Stop{Reason: StopOrphaned, Grace: tc.asked}
			w.addSandbox(0)
			c := w.newContainer("a", 2, "sb0")
			c.Annotations = tc.annotations
			w.addContainer(c)
			w.seen.Mounted["v"] = true
			w.settle()
			w.expect("StopContainer a "+tc.want, "RemoveSandbox sb0", "Unmount v", "RemoveCgroup", "RemovePodDir")
			if w.mem.Phase != Finished {
				t.Fatalf("phase %d", w.mem.Phase)
			}
		})
	}
	t.Run("wanted by nobody", func(t *testing.T) {
		w := newWorld(t, nil)
		w.addContainer(w.newContainer("a", 0, "sandbox-that-is-gone"))
		w.settle()
		w.expect("StopContainer a 30s", "RemoveContainer a-0", "RemoveCgroup", "RemovePodDir")
	})
}

func TestProbes(t *testing.T) {
	no, grace := false, 5*time.Second
	for name, tc := range map[string]struct {
		policy corev1.RestartPolicy
		probe  Probe
		stop   string
		event  string
		phase  Phase
	}{
		"liveness": {
			corev1.RestartPolicyAlways, Probe{ContainerID: "a-0", Unhealthy: true}, "StopContainer a 30s",
			"Killing: Container a failed liveness probe, will be restarted", Running,
		},
		"startup, own grace": {
			corev1.RestartPolicyAlways, Probe{ContainerID: "a-0", Unhealthy: true, Started: &no, Grace: &grace}, "StopContainer a 5s",
			"Killing: Container a failed startup probe, will be restarted", Running,
		},
		"never": {
			corev1.RestartPolicyNever, Probe{ContainerID: "a-0", Unhealthy: true}, "StopContainer a 30s",
			"Killing: Container a failed liveness probe", Cleaning,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(tc.policy, mainC("a")))
			w.settle()
			w.took()
			w.seen.Probes["a"] = tc.probe
			w.settle()
			if log := w.took(); log[0] != tc.stop || w.mem.Phase != tc.phase || w.event[0] != tc.event {
				t.Fatalf("did %q, phase %d, events %q", log, w.mem.Phase, w.event)
			}
		})
	}
	t.Run("of an older container, or of one that is being stopped", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.settle()
		w.took()
		w.seen.Probes["a"] = Probe{ContainerID: "older", Unhealthy: true}
		w.settle()
		w.expect()
		w.hold[StopContainer] = true
		w.stopNow(StopDeleted, 30*time.Second)
		w.settle()
		w.seen.Probes["a"] = Probe{ContainerID: "a-0", Unhealthy: true, Grace: new(time.Duration)}
		w.settle()
		w.expect("RunHooksStopping", "StopContainer a 30s")
	})
}

func TestReadiness(t *testing.T) {
	yes, no := true, false
	probed := func(c *corev1.Container) { c.ReadinessProbe, c.StartupProbe = &corev1.Probe{}, &corev1.Probe{} }
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", probed)))
	expect := func(started, ready bool) {
		t.Helper()
		w.settle()
		if st := w.status("a"); *st.Started != started || st.Ready != ready {
			t.Fatalf("started %v ready %v", *st.Started, st.Ready)
		}
	}
	expect(false, false)
	w.seen.Probes["a"] = Probe{ContainerID: "a-0", Started: &no, Ready: &yes}
	expect(false, false)
	w.seen.Probes["a"] = Probe{ContainerID: "a-0", Started: &yes, Ready: &no}
	expect(true, false)
	w.seen.Probes["a"] = Probe{ContainerID: "a-0", Started: &yes, Ready: &yes}
	expect(true, true)
	w.restartAgent() // no flap while no probe has run yet
	expect(true, true)
	w.seen.Probes["a"] = Probe{ContainerID: "a-0", Started: &no}
	expect(true, true)
	w.hold[StopContainer] = true
	w.stopNow(StopDeleted, 30*time.Second)
	expect(true, false)
}

func TestPostStart(t *testing.T) {
	hooked := func(c *corev1.Container) {
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
	}
	t.Run("done", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, sidecar("s", hooked), mainC("a")))
		w.hold[RunPostStart] = true
		w.settle()
		if log := w.took(); log[len(log)-1] != "RunPostStart s" || *w.status("s").Started {
			t.Fatalf("did %q", log)
		}
		w.land(KeyPostStart("s"))
		w.settle()
		w.expect("StartContainer a#0")
		w.restartAgent()
		w.settle() // counts as done
		w.expect("Admit", "RunHooksPrepare", "EnsureCgroup")
	})
	t.Run("agent lost while it ran", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", hooked)))
		w.hold[RunPostStart] = true
		w.settle()
		w.took()
		w.restartAgent()
		w.settle()
		w.expect("Admit", "RunHooksPrepare", "EnsureCgroup")
	})
	t.Run("failed", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a", hooked)))
		w.hold[RunPostStart] = true
		w.settle()
		w.took()
		delete(w.busy, KeyPostStart("a"))
		w.seen.PostStart["a-0"] = PostStart{Done: true, Failed: true, Message: "exit 1"}
		w.settle()
		if log := w.took(); log[0] != "StopContainer a 30s" {
			t.Fatalf("did %q", log)
		}
		if w.event[0] != "FailedPostStartHook: exit 1" || w.event[1] != "Killing: FailedPostStartHook" {
			t.Fatalf("events %q", w.event)
		}
		w.expectPhase(Cleaning, corev1.PodFailed)
	})
	t.Run("cancelled by the end of the pod", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", hooked)))
		w.hold[RunPostStart] = true
		w.settle()
		w.took()
		w.stopNow(StopDeleted, 30*time.Second)
		w.step()
		w.expect("cancel poststart/a", "RunHooksStopping")
	})
}

func TestCreatedIsNotARun(t *testing.T) { // k/k#107845
	create := func(w *world, a Action) {
		c := w.newContainer(a.Container, a.Attempt, a.SandboxID)
		c.State, c.StartedAt = runtime.ContainerCreated, time.Time{}
		w.addContainer(c)
	}
	w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a")))
	failing := true
	w.fail = func(a Action) *Failure {
		if a.Kind != StartContainer || !failing {
			return nil
		}
		create(w, a)
		return &Failure{Reason: "RunContainerError", Message: "no such command", RetryAt: w.now.Add(10 * time.Second)}
	}
	w.settle()
	w.took()
	st := w.status("a")
	if st.State.Waiting == nil || st.State.Waiting.Reason != "RunContainerError" || st.State.Waiting.Message != "no such command" || st.RestartCount != 0 {
		t.Fatalf("status %+v", st)
	}
	w.expectPhase(Preparing, corev1.PodPending)
	w.after(10 * time.Second)
	w.expect("RemoveContainer a-0", "StartContainer a#0")
	w.after(19 * time.Second) // the wait doubles although the removal went well
	w.expect()
	w.expectState("a", "RunContainerError")
	failing = false
	w.after(time.Second)
	w.expect("RemoveContainer a-0", "StartContainer a#0")
	w.expectState("a", "running")
	if w.status("a").RestartCount != 0 {
		t.Fatal("counted")
	}

	w = newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a")))
	failing = true
	w.fail = func(a Action) *Failure {
		if a.Kind != StartContainer {
			return nil
		}
		create(w, a)
		return &Failure{Reason: "RunContainerError", RetryAt: w.now.Add(10 * time.Second)}
	}
	w.settle()
	w.stopNow(StopDeleted, time.Second)
	w.settle()
	w.expectPhase(Finished, corev1.PodFailed)
	w.expectState("a", "ContainerStatusUnknown(137)")
}

// What runs the actions forgets an image after a failed start, as it may be gone.
func TestImageIsAskedForAgainBeforeTheNextTry(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a")))
	failing := true
	w.fail = func(a Action) *Failure {
		switch {
		case a.Kind == StartContainer && failing:
			delete(w.seen.Images, "a")
			return &Failure{Reason: "RunContainerError", Message: "no such image", RetryAt: w.now.Add(10 * time.Second)}
		case a.Kind == Pull && !failing:
			failing = true
			return &Failure{Reason: "ErrImagePull", Message: "no such registry", RetryAt: w.now.Add(10 * time.Second)}
		}
		return nil
	}
	w.settle()
	w.took()
	w.after(9 * time.Second)
	w.expect() // the pull waits with the start
	w.expectState("a", "RunContainerError")
	failing = false
	w.after(time.Second)
	w.expect("Pull a")
	w.expectState("a", "ErrImagePull")
	w.after(10 * time.Second)
	w.expect("Pull a", "StartContainer a#0")
	w.expectState("a", "RunContainerError")
}

func TestUnknownIsStoppedFirst(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.took()
	w.setContainer("a-0", func(c *runtime.Container) { c.State = runtime.ContainerUnknown })
	w.settle()
	w.expect("StopContainer a 30s", "StartContainer a#1")
}

// A runtime that was killed while it started a container calls its state
// unknown, and knows no start: who is told that such a container runs sees a
// container restarted that never was up.
func TestUnknownThatNeverStartedIsNotToldAsRunning(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.hold[StartContainer], w.hold[StopContainer] = true, true
	w.settle()
	cutOff := w.newContainer("a", 0, "sb0")
	cutOff.State, cutOff.StartedAt = runtime.ContainerUnknown, time.Time{}
	w.addContainer(cutOff)
	w.seen.Failed[KeyContainer("a")] = Failure{Reason: "RunContainerError", Message: "connection closed"}
	delete(w.busy, KeyContainer("a"))
	w.settle()
	w.expectState("a", waitCreating)
	if st := w.status("a"); st.Ready {
		t.Fatalf("ready: %+v", st)
	}
	w.hold[StartContainer], w.hold[StopContainer] = false, false
	w.setContainer("a-0", func(c *runtime.Container) { c.State, c.ExitCode = runtime.ContainerExited, 255 })
	w.land(KeyContainer("a"))
	w.after(time.Minute)
	w.expectState("a", "running")
}

// What was told to run stays so until its end is known.
func TestUnknownThatRanStaysToldAsRunning(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.expectState("a", "running")
	w.hold[StopContainer] = true
	w.setContainer("a-0", func(c *runtime.Container) { c.State, c.StartedAt = runtime.ContainerUnknown, time.Time{} })
	w.settle()
	w.expectState("a", "running")
	w.restartAgent()
	w.settle()
	w.expectState("a", "running")
}

func TestDeadContainersAreRemoved(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.want.Rules.KeepDead = 2
	w.addSandbox(0)
	for attempt := range uint32(5) {
		w.addContainer(w.newContainer("a", attempt, "sb0"))
		if attempt < 4 {
			w.exit(w.newContainer("a", attempt, "").ID, 1)
		}
	}
	w.settle()
	w.expect("Admit", "RunHooksPrepare", "EnsureCgroup", "RemoveContainer a-0", "RemoveContainer a-1")
}

func TestAStopAskedForIsNotTakenBack(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.took()
	failures := 1
	w.fail = func(a Action) *Failure {
		if a.Kind == StopContainer && failures > 0 {
			failures--
			return &Failure{Reason: "KillContainerError", RetryAt: w.now.Add(time.Second)}
		}
		return nil
	}
	w.seen.Probes["a"] = Probe{ContainerID: "a-0", Unhealthy: true}
	w.settle()
	w.seen.Probes["a"] = Probe{ContainerID: "a-0"} // its preStop hook may have run by now
	w.after(time.Second)
	w.expect("StopContainer a 30s", "StopContainer a 29s", "StartContainer a#1")
}

func TestARunSeenWhileCleaningIsStopped(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.hold[RemoveSandbox] = true
	w.stopNow(StopDeleted, 30*time.Second)
	w.settle()
	w.took()
	delete(w.busy, KeySandbox)
	w.seen.Failed[KeySandbox] = Failure{Reason: "FailedKillPod", At: w.now, RetryAt: w.now.Add(time.Second)}
	w.setContainer("a-0", func(c *runtime.Container) { c.State = runtime.ContainerRunning })
	w.hold = map[Kind]bool{}
	w.after(time.Second)
	w.expect("StopContainer a 29s", "RemoveSandbox sb0", "RemoveCgroup", "RunHooksCleanup", "RemovePodDir")
	w.expectPhase(Finished, corev1.PodFailed)
}

func TestEvictedThenDeletedWhileStopping(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.hold[StopContainer] = true
	w.want.Stop = &Stop{Reason: StopEvicted, StatusReason: "Evicted", Message: "memory", At: w.now, Grace: 9 * time.Second}
	w.settle()
	w.stopNow(StopDeleted, 5*time.Second)
	w.settle()
	w.land(KeyContainer("a"))
	w.settle()
	w.expectPhase(Finished, corev1.PodFailed)
	if c := w.condition(corev1.DisruptionTarget); w.plan.Status.Reason != "Evicted" || c.Status != corev1.ConditionTrue || c.Message != "memory" {
		t.Fatalf("status %+v", w.plan.Status)
	}
}

func TestEndedPodIsNotRunAgain(t *testing.T) {
	for static, phase := range map[bool]corev1.PodPhase{false: corev1.PodFailed, true: corev1.PodRunning} {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.want.Static = static
		w.want.Prior = &corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "memory"}
		w.settle()
		if got := w.plan.Status; got.Phase != phase || (!static && got.Reason != "Evicted") {
			t.Errorf("static %v: %s %s", static, got.Phase, got.Reason)
		}
	}
}
