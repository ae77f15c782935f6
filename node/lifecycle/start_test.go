package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

func TestNothingBeforeTheRuntimeWasRead(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.seen.Looked = false
	w.settle()
	w.expect()
	w.expectPhase(Queued, corev1.PodPending)

	w.want.Prior = &corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.0.9"}
	w.settle()
	if w.plan.Status.PodIP != "10.1.0.9" {
		t.Fatalf("the status that the API server has is not kept: %+v", w.plan.Status)
	}
}

func TestHeldPodWaits(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.want.Held = true
	w.settle()
	w.expect()
	w.expectPhase(Queued, corev1.PodPending)
	w.want.Held = false
	w.settle()
	w.expectPhase(Running, corev1.PodRunning)
}

func TestHeldPodThatIsDeletedEndsAtOnce(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.want.Held = true
	w.seen.Looked = false
	w.stopNow(StopDeleted, time.Second)
	w.settle()
	w.expect()
	w.expectPhase(Finished, corev1.PodPending)
}

func TestHeldPodLeavesTheOlderOnesContainersAlone(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.want.Held = true
	w.addSandbox(0)
	w.addContainer(w.newContainer("a", 0, "sb0"))
	w.stopNow(StopDeleted, time.Second)
	w.settle()
	w.expect()
	w.expectPhase(Queued, corev1.PodPending)
	w.want.Held = false
	w.settle()
	w.expectPhase(Finished, corev1.PodFailed)
}

func TestAdmission(t *testing.T) {
	t.Run("later", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.seen.Admission = Admission{Verdict: VerdictLater, Reason: "NoCPU", RetryAt: w.now.Add(5 * time.Second)}
		w.settle()
		w.expect()
		w.expectPhase(Queued, corev1.PodPending)
		if !w.plan.Wake.Equal(w.now.Add(5 * time.Second)) {
			t.Fatalf("wake %s", w.plan.Wake)
		}
		w.after(5 * time.Second)
		w.expectPhase(Running, corev1.PodRunning)
	})
	t.Run("rejected", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.seen.Admission = Admission{Verdict: VerdictReject, Reason: "OutOfcpu", Message: "no CPU"}
		w.settle()
		w.expect("RemoveCgroup")
		w.expectPhase(Cleaning, corev1.PodFailed)
		if s := w.plan.Status; s.Reason != "OutOfcpu" || s.Message != "Pod was rejected: no CPU" || len(s.ContainerStatuses) != 0 {
			t.Fatalf("status %+v", s)
		}
		w.stopNow(StopDeleted, 0)
		w.settle()
		w.expect("RunHooksCleanup", "RemovePodDir")
		w.expectPhase(Finished, corev1.PodFailed)
	})
	t.Run("rejected after a restart of the agent", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a"), mainC("b")))
		w.settle()
		w.restartAgent()
		w.seen.Admission = Admission{Verdict: VerdictReject, Reason: "UnsupportedField", Message: "m"}
		w.took()
		w.event = nil
		w.settle()
		w.expect() // it runs, as it was started
		w.expectPhase(Queued, corev1.PodRunning)
		if got := w.condition(corev1.PodReady).Status; got != corev1.ConditionTrue {
			t.Fatalf("ready %s", got)
		}
		if !slices.Equal(w.event, []string{"UnsupportedField: m"}) {
			t.Fatalf("events %q", w.event)
		}
		w.exit("a-0", 1)
		w.after(time.Hour)
		w.expect()
		w.expectState("a", "Error(1)")
		w.expectState("b", "running")
		w.exit("b-0", 0)
		w.settle()
		w.expectPhase(Cleaning, corev1.PodFailed)
		if s := w.plan.Status; s.Reason != "UnsupportedField" || s.Message != "Pod was rejected: m" {
			t.Fatalf("status %+v", s)
		}
	})
	t.Run("rejected after a restart of the agent, and deleted", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.settle()
		w.restartAgent()
		w.seen.Admission = Admission{Verdict: VerdictReject, Reason: "UnsupportedField", Message: "m"}
		w.settle()
		w.took()
		w.stopNow(StopDeleted, 30*time.Second)
		w.settle()
		w.expect("RunHooksStopping", "StopContainer a 30s", "RemoveSandbox sb0", "RemoveCgroup", "RunHooksCleanup", "RemovePodDir")
	})
}

func TestPullsMountsAndSandboxGoTogether(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways,
		initC("i"), mainC("a", mounting("v")), mainC("b"), volumes("v")))
	w.hold = map[Kind]bool{Mount: true, Pull: true, RunSandbox: true, EnsureCgroup: true}
	w.settle()
	w.expect("Admit", "RunHooksPrepare", "EnsureCgroup", "Mount v", "Pull i", "Pull a", "Pull b")
	w.land(KeyCgroup)
	w.settle()
	w.expect("RunSandbox 0")
	w.exits["i#0"] = 0
	w.land(KeyImage("b"))
	w.land(KeySandbox)
	w.settle()
	w.expect()
	w.land(KeyImage("i"))
	w.settle()
	w.expect("StartContainer i#0", "StartContainer b#0") // b does not wait for what a needs
	w.land(KeyImage("a"))
	w.settle()
	w.expect()
	w.land(KeyVolume("v"))
	w.settle()
	w.expect("StartContainer a#0")
}

func TestSandboxWaits(t *testing.T) {
	t.Run("for the network", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.seen.NetworkReady = false
		w.settle()
		w.settle()
		if w.mem.Phase != Preparing || len(w.event) != 1 || w.event[0][:15] != "NetworkNotReady" {
			t.Fatalf("phase %d, events %q", w.mem.Phase, w.event)
		}
		w.seen.NetworkReady = true
		w.settle()
		w.expectPhase(Running, corev1.PodRunning)
	})
	t.Run("not for the network on the host's", func(t *testing.T) {
		pod := newPod(corev1.RestartPolicyAlways, mainC("a"))
		pod.Spec.HostNetwork = true
		w := newWorld(t, pod)
		w.seen.NetworkReady = false
		w.settle()
		w.expectPhase(Running, corev1.PodRunning)
		if w.plan.Status.PodIP != "10.0.0.1" || w.plan.Status.HostIP != "10.0.0.1" {
			t.Fatalf("addresses %+v", w.plan.Status.PodIPs)
		}
	})
	t.Run("for far volumes", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v")))
		w.seen.Far = map[string]bool{"v": true}
		w.settle()
		w.expect("Admit", "RunHooksPrepare", "EnsureCgroup", "Mount v", "Pull a")
		w.seen.Far = nil
		w.settle()
		w.expect("RunSandbox 0", "StartContainer a#0")
	})
}

func TestSandboxThatGotNoAddress(t *testing.T) {
	without := func(w *world) {
		list := slices.Clone(w.seen.Runtime.Sandboxes)
		list[0].IPs, list[0].NoAddress = nil, true
		w.seen.Runtime.Sandboxes = list
	}
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.hold[StartContainer] = true
	w.settle()
	w.took()
	without(w)
	w.seen.LookedAt = w.now
	w.settle()
	w.expect() // it may be on its way
	w.now = w.now.Add(time.Hour)
	w.settle()
	w.expect() // nobody looked since
	w.hold[StartContainer] = false
	w.land(KeyContainer("a"))
	w.seen.LookedAt = w.now
	w.settle()
	w.expect("StopContainer a 30s", "StopSandbox sb0", "RunSandbox 1", "StartContainer a#1")
	// One that gets none either is not made anew in a tight loop.
	for range 3 {
		before := w.seen.Runtime.Sandboxes[0]
		without(w)
		w.seen.LookedAt = before.CreatedAt.Add(SettleTime - 1)
		w.settle()
		if w.seen.Runtime.Sandboxes[0].ID != before.ID {
			t.Fatalf("sandbox %s ended too early", before.ID)
		}
		w.seen.LookedAt = before.CreatedAt.Add(SettleTime)
		w.after(10 * time.Second)
		after := w.seen.Runtime.Sandboxes[0]
		if after.CreatedAt.Sub(before.CreatedAt) < SettleTime {
			t.Fatalf("%s made anew after %s", before.ID, after.CreatedAt.Sub(before.CreatedAt))
		}
	}
}

func TestInitContainersGoInOrder(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, initC("i"), initC("j"), mainC("a"), mainC("b")))
	w.settle()
	w.expectState("i", "running")
	w.expectState("j", "PodInitializing")
	w.expectState("a", "PodInitializing")
	w.expectPhase(Running, corev1.PodPending)
	if c := w.condition(corev1.PodInitialized); c.Status != corev1.ConditionFalse ||
		c.Reason != "ContainersNotInitialized" || c.Message != "containers with incomplete status: [i j]" {
		t.Fatalf("condition %+v", c)
	}
	if c := w.condition(corev1.ContainersReady); c.Reason != "ContainersNotReady" ||
		c.Message != "containers with unready status: [a b]" || c.ObservedGeneration != 3 {
		t.Fatalf("condition %+v", c)
	}
	w.took()
	w.exit("i-0", 0)
	w.settle()
	w.expect("StartContainer j#0")
	w.exit("j-0", 0)
	w.settle()
	w.expect("StartContainer a#0", "StartContainer b#0")
	if !w.status("i").Ready || w.condition(corev1.PodInitialized).Status != corev1.ConditionTrue {
		t.Fatalf("status %+v", w.plan.Status)
	}
}

func TestInitContainersRunOncePerSandbox(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, initC("i"), mainC("a")))
	w.exits["i#0"], w.exits["i#1"] = 0, 0
	w.settle()
	w.took()

	// Their dead containers may go.
	w.editContainers(func(list []runtime.Container) []runtime.Container {
		return []runtime.Container{list[0]}
	})
	w.exit("a-0", 1)
	w.settle()
	w.expect("StartContainer a#1")
	w.restartAgent()
	w.settle()
	w.expect("Admit", "RunHooksPrepare", "EnsureCgroup")

	// A new sandbox runs them again.
	w.now = w.now.Add(time.Hour)
	w.exit("a-1", 137)
	w.endSandbox(Action{SandboxID: "sb0"})
	w.settle()
	w.expect("Pull i", "Pull a", "StopSandbox sb0", "RemoveContainer a-0", "RunSandbox 1", "StartContainer i#1", "StartContainer a#2")
}

func TestInitFailure(t *testing.T) {
	t.Run("Never fails the pod", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyNever, initC("i"), mainC("a")))
		w.exits["i#0"] = 3
		w.settle()
		w.expectPhase(Cleaning, corev1.PodFailed)
		w.expectState("i", "Error(3)")
		w.expectState("a", "PodInitializing")
	})
	t.Run("Always backs off", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, initC("i"), mainC("a")))
		w.exits["i#0"], w.exits["i#1"], w.exits["i#2"] = 3, 3, 0
		w.settle()
		w.expectState("i", "CrashLoopBackOff")
		w.after(9 * time.Second)
		w.expectState("i", "CrashLoopBackOff")
		w.after(time.Second)
		w.expectState("i", "Completed(0)")
		w.expectState("a", "running")
	})
}

func TestSidecars(t *testing.T) {
	probed := func(c *corev1.Container) { c.StartupProbe = &corev1.Probe{} }
	w := newWorld(t, newPod(corev1.RestartPolicyNever, sidecar("s", probed), sidecar("r"), mainC("a")))
	w.settle()
	if w.took(); len(w.alive()) != 1 {
		t.Fatalf("alive %v", w.alive())
	}
	started := true
	w.seen.Probes["s"] = Probe{ContainerID: "s-0", Started: &started}
	w.settle()
	w.expect("StartContainer r#0", "StartContainer a#0")

	// Restarted for ever, also when the policy is Never.
	w.exit("s-0", 1)
	w.settle()
	w.expect("StartContainer s#1")
	w.expectPhase(Running, corev1.PodRunning)

	// Main containers are done: sidecars go, the last one first.
	w.exit("a-0", 0)
	w.hold[StopContainer] = true
	w.settle()
	w.expect("RunHooksStopping", "StopContainer r 30s")
	w.land(KeyContainer("r"))
	w.settle()
	w.expect("StopContainer s 30s")
	w.expectPhase(Stopping, corev1.PodRunning)
	w.land(KeyContainer("s"))
	w.settle()
	w.expectPhase(Cleaning, corev1.PodSucceeded)
}

func TestSidecarsStopAfterMainsOnDeletion(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, sidecar("s"), sidecar("r"), mainC("a"), mainC("b")))
	w.settle()
	w.took()
	w.hold[StopContainer] = true
	w.stopNow(StopDeleted, 30*time.Second)
	w.settle()
	w.expect("RunHooksStopping", "StopContainer a 30s", "StopContainer b 30s")
	w.land(KeyContainer("a"))
	w.now = w.now.Add(10 * time.Second)
	w.settle()
	w.expect()
	w.land(KeyContainer("b"))
	w.settle()
	w.expect("StopContainer r 20s")
	w.after(20 * time.Second) // the grace is over: nobody waits any more
	w.expect("StopContainer s 2s")
}

func TestEphemeralContainerRunsOnce(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, initC("i"), mainC("a"), func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "img/debug"},
		}}
	}))
	w.settle()
	w.expectState("debug", "running") // also while init containers run
	w.exit("debug-0", 1)
	w.settle()
	w.after(time.Hour)
	w.expectState("debug", "Error(1)")
	if len(w.plan.Status.EphemeralContainerStatuses) != 1 || w.plan.Status.Phase != corev1.PodPending {
		t.Fatalf("status %+v", w.plan.Status)
	}
}
