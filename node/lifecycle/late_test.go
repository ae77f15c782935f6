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
