package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

func TestWaitingForAdmissionIsACondition(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.hold[Admit] = true
	w.step()
	delete(w.busy, KeyAdmit)
	w.seen.Admission = Admission{Verdict: VerdictLater, Reason: "NodePorts", Message: "taken", RetryAt: w.now.Add(time.Minute)}
	w.step()
	c := w.condition(ConditionAdmitted)
	if c.Status != corev1.ConditionFalse || c.Reason != "NodePorts" || c.Message != "taken" || !c.LastTransitionTime.Time.Equal(t0) {
		t.Errorf("while it waits: %+v", c)
	}
	if c := w.condition(corev1.PodScheduled); c.Status != corev1.ConditionTrue {
		t.Errorf("PodScheduled: %+v", c)
	}
	w.expectPhase(Queued, corev1.PodPending)

	w.now = w.now.Add(2 * time.Second)
	w.seen.Admission = Admission{Verdict: VerdictAdmit}
	w.settle()
	if c := w.condition(ConditionAdmitted); c.Status != corev1.ConditionTrue || c.Reason != "" || !c.LastTransitionTime.Time.Equal(w.now) {
		t.Errorf("admitted: %+v", c)
	}
	w.restartAgent()
	w.settle()
	if c := w.condition(ConditionAdmitted); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Time.Equal(w.now) {
		t.Errorf("after a restart of the agent: %+v", c)
	}
}

func TestAdmittedAtOnceHasNoCondition(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	if c := w.condition(ConditionAdmitted); c.Type != "" {
		t.Errorf("%+v", c)
	}
}

// TestRejectionThatStopsWhatRuns: a pod that an agent before this one started is
// left alone, unless the rejection says otherwise.
func TestRejectionThatStopsWhatRuns(t *testing.T) {
	for stops, phase := range map[bool]corev1.PodPhase{false: corev1.PodRunning, true: corev1.PodFailed} {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.settle()
		w.restartAgent()
		w.hold[Admit] = true
		w.step()
		delete(w.busy, KeyAdmit)
		w.seen.Admission = Admission{Verdict: VerdictReject, Reason: "TaintToleration", Message: "no", StopsRunning: stops}
		w.settle()
		if got := w.plan.Status; got.Phase != phase || stops && got.Reason != "TaintToleration" {
			t.Errorf("stops %v: %s %s", stops, got.Phase, got.Reason)
		}
	}
}

// failing makes each action of that kind fail, with a back-off of a minute.
func (w *world) failing(kind Kind, reason string) {
	w.fail = func(a Action) *Failure {
		if a.Kind != kind {
			return nil
		}
		return &Failure{Reason: reason, Message: "missing", Began: w.now, RetryAt: w.now.Add(time.Minute)}
	}
}

func TestNewsEndsTheWaitForWhatLacked(t *testing.T) {
	pod := func() *corev1.Pod { return newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v")) }
	for _, tc := range []struct {
		kind   Kind
		reason string
		again  string // what is tried again; empty: nothing
	}{
		{StartContainer, reasonConfig, "StartContainer a#0"},
		{StartContainer, "RunContainerError", ""},
		{Mount, "FailedMount", "Mount v"},
		{Pull, "ErrImagePull", ""},
		{RunSandbox, "FailedCreatePodSandBox", ""},
	} {
		t.Run(string(tc.kind)+tc.reason, func(t *testing.T) {
			w := newWorld(t, pod())
			w.failing(tc.kind, tc.reason)
			w.settle()
			w.took()
			w.after(20 * time.Second)
			w.expect()
			w.fail, w.seen.NewsAt = nil, w.now
			w.settle()
			got := w.took()
			if tc.again == "" && len(got) > 0 || tc.again != "" && (len(got) == 0 || got[0] != tc.again) {
				t.Errorf("after the news %q", got)
			}
		})
	}
}

// TestNewsIsNoReasonForATightLoop: at most one try in a second, however fast the
// news comes; and news from before the try tells nothing.
func TestNewsIsNoReasonForATightLoop(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.failing(StartContainer, reasonConfig)
	w.settle()
	w.took()
	for range 50 {
		w.now = w.now.Add(100 * time.Millisecond)
		w.seen.NewsAt = w.now
		w.settle()
	}
	if got := len(w.took()); got > 6 {
		t.Errorf("%d tries in 5 s", got)
	}
	w.now = w.now.Add(2 * time.Second)
	w.settle()
	w.took()
	w.after(30 * time.Second)
	w.expect()
}

func TestStopSignalInStatus(t *testing.T) {
	for _, on := range []bool{true, false} {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.want.Rules.StopSignals = on
		w.settle()
		w.setContainer("a-0", func(c *runtime.Container) { c.StopSignal = "SIGUSR1" })
		w.settle()
		if got := w.status("a").StopSignal; (got != nil) != on || on && *got != "SIGUSR1" {
			t.Errorf("gate %v: %v", on, got)
		}
	}
}

// A pod that was rejected and runs on has a deadline like any other (found by
// test/sim).
func TestDeadlineOfWhatIsLeftRunning(t *testing.T) {
	pod := newPod(corev1.RestartPolicyAlways, mainC("a"))
	deadline := int64(60)
	pod.Spec.ActiveDeadlineSeconds = &deadline
	w := newWorld(t, pod)
	w.settle()
	w.restartAgent()
	w.hold[Admit] = true
	w.step()
	delete(w.busy, KeyAdmit)
	w.seen.Admission = Admission{Verdict: VerdictReject, Reason: "NodeAffinity", Message: "no"}
	w.after(59 * time.Second)
	w.expectState("a", "running")
	w.after(2 * time.Second)
	if got := w.plan.Status; got.Phase != corev1.PodFailed || got.Reason != reasonDeadline {
		t.Errorf("%s %s", got.Phase, got.Reason)
	}
}
