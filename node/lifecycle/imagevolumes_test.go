package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestImageVolumeThatCanNotBeHad is told of as the image of a container is: once
// for the volume, and for each container that mounts it.
func TestImageVolumeThatCanNotBeHad(t *testing.T) {
	with := mounting("model")
	pod := newPod(corev1.RestartPolicyAlways, mainC("a", with), mainC("b", with), mainC("c"))
	pod.Spec.Volumes = []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{
		Image: &corev1.ImageVolumeSource{Reference: "img/model"},
	}}}
	w := newWorld(t, pod)
	w.failing(Mount, "ErrImagePull")
	w.settle()
	w.took()
	want := []string{`Failed: Failed to pull image "img/model": missing`, "Failed: Error: ErrImagePull", "Failed: Error: ErrImagePull"}
	if !slices.Equal(w.event, want) {
		t.Errorf("events %q, want %q", w.event, want)
	}
	wantWaiting(t, w, "ErrImagePull", "ErrImagePull", "")

	w.event = nil
	for range 2 {
		w.after(12 * time.Second)
	}
	want = []string{`BackOff: Back-off pulling image "img/model"`, "Failed: Error: ImagePullBackOff", "Failed: Error: ImagePullBackOff"}
	if !slices.Equal(w.event, want) {
		t.Errorf("events %q, want %q", w.event, want)
	}
	wantWaiting(t, w, "ImagePullBackOff", "ImagePullBackOff", "")
}

// wantWaiting checks what each container waits with; empty: it does not wait.
func wantWaiting(t *testing.T, w *world, reasons ...string) {
	t.Helper()
	for i, st := range w.plan.Status.ContainerStatuses {
		got := ""
		if st.State.Waiting != nil {
			got = st.State.Waiting.Reason
		}
		if got != reasons[i] {
			t.Errorf("container %s: state %+v, want it to wait with %s", st.Name, st.State, reasons[i])
		}
	}
}
