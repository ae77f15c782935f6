package register

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func told() *corev1.Node {
	at := metav1.NewTime(noon)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"x": "1"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.0.0.0/24"},
		Status: corev1.NodeStatus{
			Capacity:  corev1.ResourceList{"cpu": resource.MustParse("4"), "hugepages-2Mi": resource.MustParse("1Gi")},
			Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}},
			Conditions: []corev1.NodeCondition{
				{Type: "Ready", Status: "True", Reason: "KubeletReady", LastHeartbeatTime: at, LastTransitionTime: at},
				{Type: "KernelDeadlock", Status: "False", LastHeartbeatTime: at, LastTransitionTime: at},
			},
			Images: []corev1.ContainerImage{{Names: []string{"a"}, SizeBytes: 1}},
		},
	}
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*corev1.Node)
		changed bool
		want    string
	}{
		{"nothing", func(*corev1.Node) {}, false, `{}`},
		{"the spec is not this patch's", func(n *corev1.Node) { n.Spec.Unschedulable = true }, false, `{}`},
		{"parts of a second", func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon.Add(300 * time.Millisecond))
		}, false, `{}`},
		{"a heartbeat is told, but is no change", func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon.Add(time.Second))
		}, false, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady",
			"lastHeartbeatTime":"2026-07-01T12:00:01Z","lastTransitionTime":"2026-07-01T12:00:00Z"}]}}`},
		{"a condition", func(n *corev1.Node) { n.Status.Conditions[0].Message = "no" }, true,
			`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"no",
			"lastHeartbeatTime":"2026-07-01T12:00:00Z","lastTransitionTime":"2026-07-01T12:00:00Z"}]}}`},
		{"a condition that is gone", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }, true,
			`{"status":{"conditions":[{"$patch":"delete","type":"KernelDeadlock"}]}}`},
		{"labels and annotations by key", func(n *corev1.Node) {
			n.Labels, n.Annotations = map[string]string{"a": "1", "c": "3"}, map[string]string{}
		}, true, `{"metadata":{"labels":{"b":null,"c":"3"},"annotations":{"x":null}}}`},
		{"capacity by key", func(n *corev1.Node) {
			n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8")}
		}, true, `{"status":{"capacity":{"cpu":"8","hugepages-2Mi":null}}}`},
		{"a quantity in other words", func(n *corev1.Node) { n.Status.Capacity["cpu"] = resource.MustParse("4000m") }, false, `{}`},
		{"addresses are replaced", func(n *corev1.Node) {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: "InternalIP", Address: "fd00::1"})
		}, true, `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"},{"type":"InternalIP","address":"fd00::1"},{"$patch":"replace"}]}}`},
		{"images whole", func(n *corev1.Node) { n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: 2}) }, true,
			`{"status":{"images":[{"names":["a"],"sizeBytes":1},{"names":null,"sizeBytes":2}]}}`},
		{"no images any more", func(n *corev1.Node) { n.Status.Images = nil }, true, `{"status":{"images":null}}`},
		{"what is nested", func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b" }, true, `{"status":{"nodeInfo":{"bootID":"b"}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := told()
			tt.change(after)
			patch, changed, err := diff(told(), after)
			if err != nil || changed != tt.changed {
				t.Errorf("changed %v, error %v", changed, err)
			}
			var got, want any
			if err := json.Unmarshal(patch, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s", patch, diff)
			}
		})
	}
	first := told()
	first.Status.Addresses = nil
	patch, _, err := diff(first, told())
	if want := `{"status":{"addresses":[{"address":"10.0.0.1","type":"InternalIP"}]}}`; err != nil || string(patch) != want {
		t.Errorf("the first addresses: %s, %v", patch, err)
	}
}
