package status

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

var (
	early = metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	late  = metav1.NewTime(time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC))
)

func cond(kind corev1.PodConditionType, status corev1.ConditionStatus, at metav1.Time, reason string) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: at, Reason: reason}
}

func shape(conditions []corev1.PodCondition) string {
	var list []string
	for _, c := range conditions {
		when := "early"
		if c.LastTransitionTime.Equal(&late) {
			when = "late"
		}
		list = append(list, string(c.Type)+"="+string(c.Status)+"/"+c.Reason+"/"+when)
	}
	return strings.Join(list, " ")
}

func TestMergedConditions(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	kubelet := corev1.PodReasonTerminationByKubelet
	for name, tc := range map[string]struct {
		has, says []corev1.PodCondition
		want      string
	}{
		"an equal status keeps its time": {
			[]corev1.PodCondition{cond("Ready", yes, early, "")}, []corev1.PodCondition{cond("Ready", yes, late, "")},
			"Ready=True//early",
		},
		"and so with another reason": {
			[]corev1.PodCondition{cond("Ready", no, early, "A")}, []corev1.PodCondition{cond("Ready", no, late, "B")},
			"Ready=False/B/early",
		},
		"another status has a new time": {
			[]corev1.PodCondition{cond("Ready", no, early, "")}, []corev1.PodCondition{cond("Ready", yes, late, "")},
			"Ready=True//late",
		},
		"others' stay, ours go when not said": {
			[]corev1.PodCondition{cond("gate", yes, early, ""), cond("Initialized", yes, early, "")}, []corev1.PodCondition{cond("Ready", yes, late, "")},
			"gate=True//early Ready=True//late",
		},
		"what we say of others' does not count": {
			[]corev1.PodCondition{cond("gate", yes, early, "")}, []corev1.PodCondition{cond("gate", no, late, "")},
			"gate=True//early",
		},
		"an eviction by the API stays": {
			[]corev1.PodCondition{cond("DisruptionTarget", yes, early, "EvictionByEvictionAPI")},
			[]corev1.PodCondition{cond("DisruptionTarget", yes, late, "EvictionByEvictionAPI")},
			"DisruptionTarget=True/EvictionByEvictionAPI/early",
		},
		"an eviction by the node replaces it": {
			[]corev1.PodCondition{cond("DisruptionTarget", yes, early, "EvictionByEvictionAPI")},
			[]corev1.PodCondition{cond("DisruptionTarget", yes, late, kubelet)},
			"DisruptionTarget=True/TerminationByKubelet/early",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shape(mergedConditions(tc.has, tc.says)); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestMergedPhase(t *testing.T) {
	for _, tc := range []struct {
		has, says corev1.PodPhase
		phase     lifecycle.Phase
		static    bool
		want      corev1.PodPhase
	}{
		{"Pending", "Running", lifecycle.Running, false, "Running"},
		{"Running", "Succeeded", lifecycle.Cleaning, false, "Succeeded"},
		{"Failed", "Running", lifecycle.Running, false, "Failed"},
		{"Failed", "Succeeded", lifecycle.Finished, false, "Failed"},
		{"Pending", "Pending", lifecycle.Finished, false, "Failed"}, // never came to anything
		{"Pending", "Pending", lifecycle.Finished, true, "Pending"},
	} {
		has := corev1.PodStatus{Phase: tc.has, Reason: "Has", Conditions: []corev1.PodCondition{cond("Ready", "True", early, "")}}
		update := node.StatusUpdate{Phase: tc.phase, Static: tc.static, Status: corev1.PodStatus{
			Phase: tc.says, Reason: "Says", Conditions: []corev1.PodCondition{cond("Ready", "True", early, "")},
		}}
		got := merged(&has, &update, late.Time)
		if got.Phase != tc.want || (got.Reason == "Has") != terminal(tc.has) {
			t.Errorf("%s + %s: phase %s, reason %s, want %s", tc.has, tc.says, got.Phase, got.Reason, tc.want)
		}
		if ready := got.Conditions[0].Status == corev1.ConditionTrue; ready == terminal(got.Phase) {
			t.Errorf("%s + %s: phase %s, ready %v", tc.has, tc.says, got.Phase, ready)
		}
	}
}

func TestMergedKeepsWhatIsOthers(t *testing.T) {
	has := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &early, QOSClass: corev1.PodQOSBurstable, NominatedNodeName: "n", ObservedGeneration: 7,
		ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "gpu"}},
	}
	update := node.StatusUpdate{Status: corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &late, QOSClass: corev1.PodQOSBestEffort, ObservedGeneration: 6,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "b"}, {Name: "a"}},
	}}
	got := merged(&has, &update, late.Time)
	if !got.StartTime.Equal(&early) || got.QOSClass != corev1.PodQOSBurstable || got.NominatedNodeName != "n" ||
		got.ObservedGeneration != 7 || len(got.ResourceClaimStatuses) != 1 {
		t.Errorf("merged %+v", got)
	}
	if got.ContainerStatuses[0].Name != "a" || update.Status.ContainerStatuses[0].Name != "b" {
		t.Error("container statuses are not sorted, or those of the update are")
	}
}

func TestMessagesShareTheirRoom(t *testing.T) {
	end := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}
	}
	long := strings.Repeat("x", 6<<10-1) + "ä and so on"
	update := node.StatusUpdate{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "i", State: end("short")}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "a", LastTerminationState: end(long)}},
	}}
	got := merged(&corev1.PodStatus{}, &update, late.Time)
	if m := got.ContainerStatuses[0].LastTerminationState.Terminated.Message; m != long[:6<<10-1] {
		t.Errorf("message of %d bytes ends in %q", len(m), m[len(m)-5:])
	}
	if m := got.InitContainerStatuses[0].State.Terminated.Message; m != "short" {
		t.Errorf("message %q", m)
	}
	if m := update.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message; m != long {
		t.Error("the update was changed")
	}
}

func TestStatusChanges(t *testing.T) {
	cpu := func(q string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
	}
	for name, tc := range map[string]struct {
		from, to corev1.PodStatus
		want     string
	}{
		"nothing":           {corev1.PodStatus{Phase: "Running"}, corev1.PodStatus{Phase: "Running"}, ``},
		"quantities of one": {corev1.PodStatus{AllocatedResources: cpu("1000m")}, corev1.PodStatus{AllocatedResources: cpu("1")}, ``},
		"a field":           {corev1.PodStatus{Phase: "Pending"}, corev1.PodStatus{Phase: "Running"}, `{"phase":"Running"}`},
		"a field that goes": {corev1.PodStatus{Reason: "X"}, corev1.PodStatus{}, `{"reason":null}`},
		"merged lists": {
			corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}}}, corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "2.2.2.2"}}},
			`{"podIPs":[{"$patch":"replace"},{"ip":"2.2.2.2"}]}`,
		},
		"maps": {
			corev1.PodStatus{AllocatedResources: cpu("1"), Resources: &corev1.ResourceRequirements{Requests: cpu("1")}},
			corev1.PodStatus{AllocatedResources: cpu("2"), Resources: &corev1.ResourceRequirements{}},
			`{"allocatedResources":{"$patch":"replace","cpu":"2"},"resources":{"$patch":"replace"}}`,
		},
		"a condition whose reason goes": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{cond("Ready", "False", early, "X"), cond("gate", "True", early, "")}},
			corev1.PodStatus{Conditions: []corev1.PodCondition{cond("gate", "True", early, ""), cond("Ready", "True", late, "")}},
			`{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-01-02T04:00:00Z","reason":null,"status":"True","type":"Ready"}]}`,
		},
		"a condition that goes": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{cond("Ready", "False", early, "X")}}, corev1.PodStatus{},
			`{"conditions":[{"$patch":"delete","type":"Ready"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := statusChanges(&tc.from, &tc.to)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestPatchOf(t *testing.T) {
	for version, want := range map[string]string{
		"":   `{"metadata":{"uid":"u1"},"status":{"phase":"Running"}}`,
		"12": `{"metadata":{"resourceVersion":"12","uid":"u1"},"status":{"phase":"Running"}}`,
	} {
		if got, err := patchOf("u1", version, json.RawMessage(`{"phase":"Running"}`)); err != nil || string(got) != want {
			t.Errorf("got %s, %v", got, err)
		}
	}
}

func TestQueue(t *testing.T) {
	var q queue
	a, b, c := &item{key: key{uid: "a"}}, &item{key: key{uid: "b"}}, &item{key: key{uid: "c"}}
	q.put(a, false)
	q.put(b, false)
	q.put(c, true)
	q.put(b, true) // moves up
	q.put(c, false)
	q.put(a, false)
	var order []string
	for it := q.take(); it != nil; it = q.take() {
		order = append(order, string(it.key.uid))
	}
	if !slices.Equal(order, []string{"c", "b", "a"}) {
		t.Errorf("order %v", order)
	}
	q.put(a, false)
	q.drop(a)
	if it := q.take(); it != nil || a.queued {
		t.Errorf("took %v", it)
	}
}
