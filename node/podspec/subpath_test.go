package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
)

func TestExpandSubPath(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Env: []corev1.EnvVar{{Name: "POD", Value: "a"}, {Name: "BOTH", Value: "$(POD)-b"}},
	}}}}
	b := &Builder{}
	for expr, want := range map[string]string{"plain": "plain", "$(POD)/x": "a/x", "$(BOTH)": "a-b", "$$(POD)": "$(POD)", "$(NOPE)": ""} {
		got, err := b.ExpandSubPath(podactor.ContainerMountsRequest{Pod: pod, Container: "main"}, expr)
		if got != want || (want == "") != (err != nil) {
			t.Errorf("%s: got %q, %v", expr, got, err)
		}
	}
}
