package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probedNames are the containers that are probed now.
func (w *world) probedNames() (names []string) {
	for _, p := range w.plan.Probes {
		names = append(names, p.Container)
	}
	return names
}

func (w *world) expectProbed(want ...string) {
	w.t.Helper()
	w.settle()
	got := w.probedNames()
	if len(got) != len(want) {
		w.t.Fatalf("probed are %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			w.t.Fatalf("probed are %v, want %v", got, want)
		}
	}
}

// TestProbed: what is probed runs, has a probe, and is not about to end.
func TestProbed(t *testing.T) {
	probed := func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} }
	slow := func(c *corev1.Container) {
		c.ReadinessProbe = &corev1.Probe{}
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
	}
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, sidecar("s", probed), mainC("a", probed), mainC("b", slow), mainC("plain")))
	w.hold[RunPostStart] = true
	w.expectProbed("s", "a")
	run := w.plan.Probes[1]
	if run.ContainerID != "a-0" || run.Host != w.plan.Status.PodIP || run.Host == "" || run.StartedAt.IsZero() || !run.Started || !run.Ready {
		t.Errorf("the run is %+v", run)
	}
	w.hold[RunPostStart] = false
	w.land(KeyPostStart("b"))
	w.expectProbed("s", "a", "b") // its hook is over
	if b := w.plan.Probes[2]; b.Ready || !b.Started {
		t.Errorf("before its first check it is %+v", b)
	}

	w.hold[StopContainer] = true
	w.seen.Probes["a"] = Probe{ContainerID: "a-0", Unhealthy: true}
	w.expectProbed("s", "b") // a is being killed
	w.stopNow(StopDeleted, 30*time.Second)
	w.expectProbed()
}
