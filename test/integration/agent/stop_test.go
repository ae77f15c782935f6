package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

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
// its grace, by its own clock: the agent's may be late on a busy machine.
func graceThenKill(t *testing.T, e *env) {
	pod := newPod("deaf", shell("main", "trap '"+`echo "TERM $(date +%s)" >> /trace/log`+"' TERM; "+say("runs")+
		"while :; do date +%s > /trace/now; mv /trace/now /trace/alive; sleep 0.2; done"))
	pod.Spec.TerminationGracePeriodSeconds = ptr(int64(3))
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "deaf", ready)
	awaitLine(t, tr, "runs")
	e.remove(t, "deaf")
	e.gone(t, got)
	alive, err := os.ReadFile(filepath.Join(tr.dir, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	if lived := seconds(t, string(alive)) - tr.saidAt(t, "TERM"); lived < 2 || lived > 5 {
		t.Errorf("it lived for %d s after SIGTERM, with a grace of 3 s", lived)
	}
}

// preStopWithinGrace: a hook that takes too long is cut off by the grace, and
// the container still gets its SIGTERM and a moment to act on it.
func preStopWithinGrace(t *testing.T, e *env) {
	c := shell("main", "trap '"+`echo "TERM $(date +%s)" >> /trace/log; exit 0`+"' TERM; "+say("runs")+"sleep 10000 & wait")
	c.Lifecycle = &corev1.Lifecycle{PreStop: exec(`echo "preStop $(date +%s)" >> /trace/log; sleep 1000; ` + say("preStop ends"))}
	pod := newPod("long-pre-stop", c)
	pod.Spec.TerminationGracePeriodSeconds = ptr(int64(3))
	tr := traced(t, pod)
	e.apply(t, pod)
	got := e.until(t, "long-pre-stop", ready)
	awaitLine(t, tr, "runs")
	e.remove(t, "long-pre-stop")
	e.gone(t, got)
	if took := tr.saidAt(t, "TERM") - tr.saidAt(t, "preStop"); took < 2 || took > 6 {
		t.Errorf("SIGTERM came %d s after the hook began, with a grace of 3 s", took)
	}
	if slices.Contains(tr.lines(t), "preStop ends") {
		t.Error("the hook outlived the grace")
	}
}

// saidAt is when a line "WORD SECONDS" was said, which must be there.
func (tr trace) saidAt(t *testing.T, word string) int {
	t.Helper()
	for _, line := range tr.lines(t) {
		if at, found := strings.CutPrefix(line, word+" "); found {
			return seconds(t, at)
		}
	}
	t.Fatalf("nobody said %q, only %q", word, tr.lines(t))
	return 0
}

func seconds(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
