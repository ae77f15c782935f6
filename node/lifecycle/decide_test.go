package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestOnePodFromBirthToDeath(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v", "unused")))
	w.settle()
	w.expect("Admit", "RunHooksPrepare", "EnsureCgroup", "Mount v", "Pull a", "RunSandbox 0", "StartContainer a#0")
	w.expectPhase(Running, corev1.PodRunning)
	w.expectState("a", "running")
	if !w.status("a").Ready || w.condition(corev1.PodReady).Status != corev1.ConditionTrue {
		t.Fatalf("not ready: %+v", w.plan.Status)
	}
	w.stopNow(StopDeleted, 30*time.Second)
	w.settle()
	w.expect("RunHooksStopping", "StopContainer a 30s", "RemoveSandbox sb0", "Unmount v", "RemoveCgroup", "RunHooksCleanup", "RemovePodDir")
	w.expectPhase(Finished, corev1.PodFailed) // it was killed: exit code 143
	w.expectState("a", "Error(143)")
}

func BenchmarkDecide(b *testing.B) {
	w := newWorld(b, newPod(corev1.RestartPolicyAlways, sidecar("s"), mainC("a", mounting("v")), mainC("b"), volumes("v")))
	w.settle()
	in := w.input()
	b.ReportAllocs()
	for b.Loop() {
		Decide(in)
	}
}
