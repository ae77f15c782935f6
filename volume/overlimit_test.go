package volume_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/volume"
)

func TestOverLimit(t *testing.T) {
	pod := newPod("u1", "/etc")
	limited := func(name, limit string) {
		q := resource.MustParse(limit)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &q}}})
	}
	limited("small", "1Ki")
	limited("nothing", "0")
	for _, tc := range []struct {
		volume string
		used   int64
		want   string
	}{
		{"data", 1 << 40, ""}, {"host", 1 << 40, ""}, {"none", 1 << 40, ""}, {"nothing", 1, ""}, {"small", 1024, ""},
		{"small", 1025, `Usage of EmptyDir volume "small" exceeds the limit "1Ki". `},
		{"small", 1<<63 - 1, `Usage of EmptyDir volume "small" exceeds the limit "1Ki". `},
	} {
		got, over := volume.OverLimit(pod, tc.volume, tc.used)
		if got != tc.want || over != (tc.want != "") {
			t.Errorf("%s holds %d: %q, %v", tc.volume, tc.used, got, over)
		}
	}
}
