package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPullFailureEvents: the reasons of events are not those of the status, as
// tools that watch for the stock kubelet's know.
func TestPullFailureEvents(t *testing.T) {
	retry := 10 * time.Second
	for _, tc := range []struct {
		reason  string
		message string
		retry   time.Duration
		want    []string
	}{
		{"ErrImagePull", "not found", retry, []string{`Failed: Failed to pull image "img/a": not found`, "Failed: Error: ErrImagePull"}},
		{"RegistryUnavailable", "image pull failed", retry, []string{`Failed: Failed to pull image "img/a": image pull failed`, "Failed: Error: RegistryUnavailable"}},
		{"InvalidImageName", "bad name", 0, []string{"InspectFailed: bad name", "Failed: Error: InvalidImageName"}},
		{"ImageInspectError", "down", retry, []string{"InspectFailed: down", "Failed: Error: ImageInspectError"}},
		{"ErrImageNeverPull", "not there", retry, []string{"ErrImageNeverPull: not there", "Failed: Error: ErrImageNeverPull"}},
		{"ImagePullBackOff", "wait", retry, []string{`BackOff: Back-off pulling image "img/a"`, "Failed: Error: ImagePullBackOff"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
			w.fail = func(a Action) *Failure {
				if a.Kind == Pull {
					return &Failure{Reason: tc.reason, Message: tc.message, RetryAt: w.now.Add(tc.retry), Fatal: tc.retry == 0}
				}
				return nil
			}
			w.settle()
			w.took()
			if !slices.Equal(w.event, tc.want) {
				t.Errorf("events %q, want %q", w.event, tc.want)
			}
		})
	}
}

// TestBackOffIsAnEventOnce for each time that it begins.
func TestBackOffIsAnEventOnce(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.failing(Pull, "ErrImagePull")
	w.settle()
	w.took()
	w.event = nil
	for range 4 {
		w.after(12 * time.Second)
	}
	want := []string{`BackOff: Back-off pulling image "img/a"`, "Failed: Error: ImagePullBackOff"}
	if !slices.Equal(w.event, want) {
		t.Errorf("events %q, want %q", w.event, want)
	}
}

// The key of a container is shared by its start, stop and removal; the event
// goes by what failed, not by what was asked of the key last.
func TestEventOfAContainersFailureGoesByItsKind(t *testing.T) {
	now := time.Unix(1000, 0)
	for kind, want := range map[Kind]string{StartContainer: "Failed", StopContainer: "FailedKillPod", RemoveContainer: "FailedKillPod"} {
		key := KeyContainer("main")
		d := newDecision(Input{Now: now, Seen: Seen{Failed: map[Key]Failure{
			key: {Kind: kind, Reason: "RunContainerError", Message: "no", At: now},
		}}, Mem: Memory{Asked: map[Key]Asked{key: {Kind: RemoveContainer}}}})
		d.tellFailures()
		if len(d.plan.Events) != 1 || d.plan.Events[0].Reason != want {
			t.Errorf("%s failed: events %+v, want the reason %s", kind, d.plan.Events, want)
		}
	}
}
