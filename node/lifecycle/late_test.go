package lifecycle

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestNothingIsTakenAwayUnderASandboxThatCameLate(t *testing.T) {
	pod := newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v"))
	for name, policy := range map[string]StopReason{"deleted": StopDeleted, "evicted": StopEvicted} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pod)
			w.seen.Mounted["v"] = true
			w.hold[Admit] = true
			w.seen.LookedAt = w.now // by then a call of a dead agent was still to take effect
			w.settle()
			w.now = w.now.Add(10 * time.Second)
			w.stopNow(policy, 30*time.Second)
			w.took()
			w.settle()
			w.expect("cancel admit")
			if !w.plan.LookSince.Equal(w.now) {
				t.Fatalf("asks for a look since %s, now is %s", w.plan.LookSince, w.now)
			}
			w.after(time.Second) // the look takes its time
			w.expect()
			w.seen.LookedAt = w.now
			w.addSandbox(0)
			w.settle() // the world is strict about what goes under a sandbox
			got := w.took()
			if len(got) < 3 || !strings.HasSuffix(got[0], "Sandbox sb0") || got[1] != "Unmount v" || got[2] != "RemoveCgroup" {
				t.Fatalf("did %s", got)
			}
			if !w.plan.LookSince.IsZero() {
				t.Fatalf("asks for one more look since %s", w.plan.LookSince)
			}
		})
	}
}

func TestOneLookSinceTheEndIsEnough(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v")))
	w.seen.LookedAt = w.now
	w.settle()
	w.hold[StopContainer] = true
	w.stopNow(StopEvicted, 30*time.Second)
	w.settle()
	w.after(3 * time.Second)
	w.seen.LookedAt = w.now // with the look at the end of the stop
	w.land(KeyContainer("a"))
	w.took()
	w.settle()
	w.expect("StopSandbox sb0", "Unmount v", "RemoveCgroup")
}

// TestAContainerThatCameLateHasItsHooks: what a dead agent's start brings while
// the pod is cleaned is stopped as any other container.
func TestAContainerThatCameLateHasItsHooks(t *testing.T) {
	for name, policy := range map[string]StopReason{"deleted": StopDeleted, "evicted": StopEvicted} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
			sandbox := w.addSandbox(0)
			w.hold[RemoveSandbox], w.hold[StopSandbox] = true, true
			w.stopNow(policy, 30*time.Second)
			w.settle()
			if got := w.took(); w.mem.Phase != Cleaning || !strings.HasSuffix(got[len(got)-1], "Sandbox sb0") {
				t.Fatalf("phase %v, did %s", w.mem.Phase, got)
			}
			w.addContainer(w.newContainer("a", 0, sandbox))
			w.settle()
			w.expect("RunHooksStopping", "StopContainer a 30s")
			w.hold[RemoveSandbox], w.hold[StopSandbox] = false, false
			w.land(KeySandbox)
			w.settle()
			if names := w.alive(); len(names) > 0 {
				t.Errorf("%v live on", names)
			}
			if policy == StopDeleted && w.mem.Phase != Finished || w.plan.Status.Phase != corev1.PodFailed {
				t.Errorf("phase %v, %s", w.mem.Phase, w.plan.Status.Phase)
			}
		})
	}
}
