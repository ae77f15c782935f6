package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestProbeCommand(t *testing.T) {
	c := &corev1.Container{Env: []corev1.EnvVar{
		{Name: "PORT", Value: "1"}, {Name: "PORT", Value: "80"},
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
	}}
	got := ProbeCommand(c, []string{"ask", "localhost:$(PORT)", "$(IP)", "$$(PORT)"})
	if want := []string{"ask", "localhost:80", "$(IP)", "$(PORT)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
