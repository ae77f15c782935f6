package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

func TestNoSandboxBesideAContainerThatRunsElsewhere(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a"), mainC("b")))
	w.addContainer(w.newContainer("a", 0, "not-shown"))
	w.hold[StopContainer] = true
	w.settle()
	w.expect("Admit", "StopContainer a 30s", "RunHooksPrepare", "EnsureCgroup", "Pull b")
	w.exit("a-0", 143) // seen already, while the stop is still in flight
	w.settle()
	w.expect()
	w.land(KeyContainer("a"))
	w.settle()
	w.expect("Pull a", "RunSandbox 0", "StartContainer a#1", "StartContainer b#0")
}

func TestMainContainersDoNotWaitForASidecarThatCrashedLater(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, sidecar("s"), mainC("a")))
	w.hold[Pull] = true
	w.settle()
	w.land(KeyImage("s"))
	w.settle() // runs, so the pod is initialized
	w.exit("s-0", 1)
	w.settle()
	w.exit("s-1", 1)
	w.settle()
	w.expectState("s", "CrashLoopBackOff")
	w.took()
	w.land(KeyImage("a"))
	w.settle()
	w.expect("StartContainer a#0")
}

func TestRestartCountNeverFalls(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.addSandbox(0)
	w.addContainer(w.newContainer("a", 3, "sb0"))
	w.want.Prior = &corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "a", RestartCount: 7, ContainerID: "containerd://a-3",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}
	w.settle()
	if got := w.status("a").RestartCount; got != 7 {
		t.Fatalf("restart count %d", got)
	}
	w.exit("a-3", 0)
	w.settle()
	w.after(5 * time.Minute)
	if got := w.status("a"); got.RestartCount != 8 || got.State.Running == nil {
		t.Fatalf("status %+v", got)
	}
}

func TestAnOlderDeadRunDoesNotStandForALostOne(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyOnFailure, mainC("a")))
	w.exits["a#0"] = 1
	w.settle()
	w.took()
	w.hold[StartContainer] = true
	w.editContainers(func(list []runtime.Container) []runtime.Container { return list[1:] }) // a-1 is gone, a-0 is not
	w.settle()
	st := w.status("a")
	if last := st.LastTerminationState.Terminated; last == nil || last.Reason != "ContainerStatusUnknown" || st.RestartCount != 1 {
		t.Fatalf("status %+v", st)
	}
	w.after(10 * time.Second)
	w.expect("StartContainer a#2")
}

func TestWhatAFlightWorksOnIsNotLost(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a")))
	w.settle()
	w.hold[StopContainer] = true
	w.seen.Probes["a"] = Probe{ContainerID: "a-0", Unhealthy: true}
	w.settle()
	seen := w.seen.Runtime.Containers
	w.seen.Runtime.Containers = nil // a look in between
	w.settle()
	w.expectState("a", "running")
	w.seen.Runtime.Containers = seen
	w.land(KeyContainer("a"))
	w.settle()
	w.expectState("a", "Error(143)")
}

func TestStartWaitsForTheHookOfTheRunBefore(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", func(c *corev1.Container) {
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
	})))
	w.hold[RunPostStart] = true
	w.settle()
	w.exit("a-0", 1)
	plan := Decide(w.input()) // the hook is told to end, and has not yet
	if len(plan.Do) != 0 || len(plan.Cancel) != 1 || plan.Cancel[0] != KeyPostStart("a") {
		t.Fatalf("do %v, cancel %v", plan.Do, plan.Cancel)
	}
	delete(w.busy, KeyPostStart("a"))
	w.took()
	w.settle()
	w.expect("StartContainer a#1", "RunPostStart a")
}
