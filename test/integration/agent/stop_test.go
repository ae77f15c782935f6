package agent

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func preStopThenTerm(t *testing.T, e *env) {
	c := shell("main", "trap \""+say("got TERM")+"exit 0\" TERM; "+say("runs")+"sleep 10000 & wait")
	c.Lifecycle = &corev1.Lifecycle{PreStop: exec(say("preStop starts") + "sleep 1; " + say("preStop ends"))}
	pod := newPod("pre-stop", c)
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "pre-stop", ready)
	awaitLine(t, tr, "runs")
	e.remove(t, "pre-stop")
	e.gone(t, got)
	wantOrder(t, tr.lines(t), "runs", "preStop starts", "preStop ends", "got TERM")
}

// graceThenKill: a container that is deaf to SIGTERM lives exactly as long as
// its grace.
func graceThenKill(t *testing.T, e *env) {
	pod := newPod("deaf", shell("main", "trap '"+`echo "got TERM" >> /trace/log`+"' TERM; "+say("runs")+"while :; do sleep 1; done"))
	pod.Spec.TerminationGracePeriodSeconds = ptr(int64(3))
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "deaf", ready)
	awaitLine(t, tr, "runs")
	began := time.Now()
	e.remove(t, "deaf")
	awaitLine(t, tr, "got TERM")
	e.gone(t, got)
	// The upper bound leaves room for the other tests on the same two cores.
	if took := time.Since(began); took < 3*time.Second || took > 10*time.Second {
		t.Errorf("it was gone after %v with a grace of 3 s", took)
	}
}

// preStopWithinGrace: a hook that takes too long is cut off by the grace, and
// the container still gets its SIGTERM and a moment to act on it.
func preStopWithinGrace(t *testing.T, e *env) {
	c := shell("main", "trap \""+say("got TERM")+"exit 0\" TERM; "+say("runs")+"sleep 10000 & wait")
	c.Lifecycle = &corev1.Lifecycle{PreStop: exec(say("preStop starts") + "sleep 1000; " + say("preStop ends"))}
	pod := newPod("long-pre-stop", c)
	pod.Spec.TerminationGracePeriodSeconds = ptr(int64(3))
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "long-pre-stop", ready)
	awaitLine(t, tr, "runs")
	began := time.Now()
	e.remove(t, "long-pre-stop")
	e.gone(t, got)
	if took := time.Since(began); took < 3*time.Second || took > 15*time.Second {
		t.Errorf("it was gone after %v with a grace of 3 s", took)
	}
	lines := tr.lines(t)
	wantOrder(t, lines, "runs", "preStop starts", "got TERM")
	if slices.Contains(lines, "preStop ends") {
		t.Error("the hook outlived the grace")
	}
}
