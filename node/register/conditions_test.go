package register

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/runtime"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestReady(t *testing.T) {
	good := runtime.Condition{Known: true, Ready: true}
	up := runtime.Status{RuntimeReady: true, NetworkReady: true, Runtime: good, Network: good, ReadyAt: noon}
	with := func(change func(*runtime.Status)) *runtime.Status {
		s := up
		change(&s)
		return &s
	}
	noCNI := runtime.Condition{Known: true, Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized"}
	broken := runtime.Condition{Known: true, Reason: "Broken", Message: "out of order"}
	const networkText = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized"
	for _, tt := range []struct {
		name     string
		runtime  *runtime.Status
		problems []string
		capacity []corev1.ResourceName
		want     string // empty: ready
	}{
		{name: "ready", runtime: &up},
		{name: "no runtime at all"},
		{name: "a runtime that tells no conditions", runtime: &runtime.Status{RuntimeReady: true, NetworkReady: true}},
		{
			name: "never read", runtime: &runtime.Status{},
			want: "[container runtime status check may not have completed yet, network state unknown]",
		},
		{name: "no network", runtime: with(func(s *runtime.Status) { s.NetworkReady, s.Network = false, noCNI }), want: networkText},
		{
			name:    "silent for a moment: it may be restarting",
			runtime: with(func(s *runtime.Status) { s.RuntimeReady, s.ReadyAt = false, noon.Add(-29*time.Second) }),
		},
		{
			name:    "silent for too long",
			runtime: with(func(s *runtime.Status) { s.RuntimeReady, s.ReadyAt = false, noon.Add(-30*time.Second) }),
			want:    "container runtime is down",
		},
		{
			name: "says itself that it is not ready",
			runtime: with(func(s *runtime.Status) {
				s.RuntimeReady, s.Runtime, s.NetworkReady, s.Network = false, broken, false, noCNI
			}),
			want: "[container runtime not ready: RuntimeReady=false reason:Broken message:out of order, " + networkText + "]",
		},
		{
			name: "checks come after the runtime, each once", runtime: with(func(s *runtime.Status) { s.NetworkReady, s.Network = false, noCNI }),
			problems: []string{"node is shutting down", "PLEG is not healthy: slow", "node is shutting down"},
			want:     "[" + networkText + ", node is shutting down, PLEG is not healthy: slow]",
		},
		{
			name: "something has no capacity", runtime: &up, capacity: []corev1.ResourceName{"cpu", "pods"},
			want: "missing node capacity for resources: memory, ephemeral-storage",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			required := []corev1.ResourceName{"cpu", "memory", "pods", "ephemeral-storage"}
			if tt.capacity == nil {
				tt.capacity = required
			}
			capacity := corev1.ResourceList{}
			for _, name := range tt.capacity {
				capacity[name] = resource.MustParse("1")
			}
			got := readyCondition(readyInput{
				now: noon, grace: 30 * time.Second, runtime: tt.runtime, problems: tt.problems, capacity: capacity, required: required,
			})
			want := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
			if tt.want != "" {
				want.Status, want.Reason, want.Message = corev1.ConditionFalse, "KubeletNotReady", tt.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemsOfChecks(t *testing.T) {
	got := problemsOf([]Check{
		{Name: "PLEG", Problem: func() error { return errors.New("slow") }},
		{Name: "fine", Problem: func() error { return nil }},
		{Problem: func() error { return errors.New("node is shutting down") }},
	})
	if diff := cmp.Diff([]string{"PLEG is not healthy: slow", "node is shutting down"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPressureConditions(t *testing.T) {
	for _, tt := range []struct {
		kind            corev1.NodeConditionType
		under           bool
		status          corev1.ConditionStatus
		reason, message string
	}{
		{corev1.NodeMemoryPressure, false, "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{corev1.NodeMemoryPressure, true, "True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"},
		{corev1.NodeDiskPressure, false, "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{corev1.NodeDiskPressure, true, "True", "KubeletHasDiskPressure", "kubelet has disk pressure"},
		{corev1.NodePIDPressure, false, "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{corev1.NodePIDPressure, true, "True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"},
	} {
		want := corev1.NodeCondition{Type: tt.kind, Status: tt.status, Reason: tt.reason, Message: tt.message}
		if diff := cmp.Diff(want, pressureCondition(tt.kind, tt.under)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestStamp: the time of a transition is kept while the status is, and nobody
// else's condition is touched.
func TestStamp(t *testing.T) {
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }
	told := func(kind, status string, beat, since time.Duration) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), LastHeartbeatTime: at(beat), LastTransitionTime: at(since),
		}
	}
	before := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		told("Kernel", "True", -time.Minute, -time.Hour), told("Ready", "True", -time.Minute, -time.Hour), told("Disk", "False", -time.Minute, -time.Hour),
	}}}
	after := before.DeepCopy()
	for kind, status := range map[string]string{"Ready": "True", "Disk": "True", "New": "False"} {
		SetCondition(after, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status)})
	}
	stamp(before, after, noon)
	want := []corev1.NodeCondition{
		told("Kernel", "True", -time.Minute, -time.Hour), told("Ready", "True", 0, -time.Hour), told("Disk", "True", 0, 0), told("New", "False", 0, 0),
	}
	if diff := cmp.Diff(want, after.Status.Conditions); diff != "" {
		t.Error(diff)
	}
}

func TestChanges(t *testing.T) {
	of := func(boot string, conditions ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		n.Status.NodeInfo.BootID = boot
		for i := 0; i < len(conditions); i += 2 {
			SetCondition(n, corev1.NodeCondition{Type: corev1.NodeConditionType(conditions[i]), Status: corev1.ConditionStatus(conditions[i+1])})
		}
		return n
	}
	for _, tt := range []struct {
		name          string
		before, after *corev1.Node
		want          []string
	}{
		{
			"a new node tells its pressures, and not that it is not ready", nil,
			of("b", "MemoryPressure", "False", "DiskPressure", "False", "PIDPressure", "False", "Ready", "False"),
			[]string{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"},
		},
		{"nothing new", of("b", "Ready", "True"), of("b", "Ready", "True"), nil},
		{"ready", of("b", "Ready", "False"), of("b", "Ready", "True"), []string{"NodeReady"}},
		{"back from unknown", of("b", "Ready", "Unknown"), of("b", "Ready", "True"), []string{"NodeReady"}},
		{"not ready", of("b", "Ready", "True"), of("b", "Ready", "False"), []string{"NodeNotReady"}},
		{
			"short of all",
			of("b", "MemoryPressure", "False", "DiskPressure", "False", "PIDPressure", "False"),
			of("b", "MemoryPressure", "True", "DiskPressure", "True", "PIDPressure", "True"),
			[]string{"NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID"},
		},
		{"first boot", of(""), of("b"), nil},
		{"rebooted", of("a"), of("b"), []string{"Rebooted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, e := range changes(tt.before, tt.after) {
				got = append(got, e.Reason)
				want := Event{"Normal", e.Reason, "Node n1 status is now: " + e.Reason}
				if e.Reason == "Rebooted" {
					want = Event{"Warning", e.Reason, "Node n1 has been rebooted, boot id: b"}
				}
				if e != want {
					t.Errorf("%+v, want %+v", e, want)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSchedulable(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if got := schedulable(n, false); got != nil {
		t.Errorf("a node as before: %v", got)
	}
	if got := schedulable(n, true); len(got) != 1 || got[0] != (Event{"Normal", "NodeSchedulable", "Node n1 status is now: NodeSchedulable"}) {
		t.Errorf("uncordoned: %v", got)
	}
	n.Spec.Unschedulable = true
	if got := schedulable(n, false); len(got) != 1 || got[0].Reason != "NodeNotSchedulable" {
		t.Errorf("cordoned: %v", got)
	}
}
