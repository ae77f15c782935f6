package downward_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/internal/downward"
)

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", Namespace: "shop", UID: "u1",
			Labels:      map[string]string{"tier": "front", "app": "web", "x.io/a": `q"\`},
			Annotations: map[string]string{"Build": "7", "note": "two\nlines"},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init"}},
			Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("100Mi")},
				Limits:   corev1.ResourceList{"memory": resource.MustParse("1500M"), "hugepages-2Mi": resource.MustParse("4Mi")},
			}}},
		},
	}
}

func TestField(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.name":                   "web-0",
		"metadata.namespace":              "shop",
		"metadata.uid":                    "u1",
		"metadata.labels":                 "app=\"web\"\ntier=\"front\"\nx.io/a=\"q\\\"\\\\\"",
		"metadata.annotations":            "Build=\"7\"\nnote=\"two\\nlines\"",
		"metadata.labels['tier']":         "front",
		"metadata.labels['x.io/a']":       `q"\`,
		"metadata.labels['none']":         "",
		"metadata.annotations['Build']":   "7",
		"metadata.labels['a b']":          "error: invalid key subscript in metadata.labels['a b']: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
		"metadata.name['x']":              `error: fieldPath "metadata.name['x']" does not support subscript`,
		"spec.nodeName":                   "error: unsupported fieldPath: spec.nodeName",
		"['x']":                           "error: unsupported fieldPath: ['x']",
		"metadata.annotations['a/b/c']":   "error",
		"metadata.labels['UPPER.io/key']": "error",
	} {
		got, err := downward.Field(pod(), path)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && !(want == "error" && err != nil) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestResource(t *testing.T) {
	allocatable := corev1.ResourceList{"cpu": resource.MustParse("3800m"), "ephemeral-storage": resource.MustParse("10Gi")}
	for ref, want := range map[[2]string]string{
		{"requests.cpu", ""}:                "1", // rounded up
		{"requests.cpu", "1m"}:              "250",
		{"requests.memory", "1Mi"}:          "100",
		{"requests.memory", ""}:             "104857600",
		{"requests.ephemeral-storage", ""}:  "0",
		{"limits.memory", "1Mi"}:            "1431", // 1430.5
		{"limits.cpu", "1m"}:                "3800", // what the node has
		{"limits.cpu", ""}:                  "4",
		{"limits.ephemeral-storage", "1Gi"}: "10",
		{"limits.hugepages-2Mi", "1Mi"}:     "4",
		{"requests.hugepages-2Mi", ""}:      "0",
		{"limits.example.com/gpu", ""}:      "error: unsupported container resource : limits.example.com/gpu",
		{"cpu", ""}:                         "error: unsupported container resource : cpu",
		{"uses.cpu", ""}:                    "error: unsupported container resource : uses.cpu",
	} {
		selector := &corev1.ResourceFieldSelector{Resource: ref[0]}
		if ref[1] != "" {
			selector.Divisor = resource.MustParse(ref[1])
		}
		got, err := downward.Resource(&pod().Spec.Containers[0], selector, allocatable)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%v: %q, want %q", ref, got, want)
		}
	}
}

func TestContainer(t *testing.T) {
	for name, want := range map[string]string{"app": "app", "init": "init", "nobody": "error: container nobody not found"} {
		got := ""
		c, err := downward.Container(pod(), name)
		if err != nil {
			got = "error: " + err.Error()
		} else {
			got = c.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func ExampleField() {
	text, _ := downward.Field(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"app": "web", "tier": "front"},
	}}, "metadata.labels")
	fmt.Println(text)
	// Output:
	// app="web"
	// tier="front"
}
