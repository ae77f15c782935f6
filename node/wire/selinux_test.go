package wire

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/selinux"
)

// TestVolumesAreLabeledWhereTheHostHasSELinux, with a host that says so.
func TestVolumesAreLabeledWhereTheHostHasSELinux(t *testing.T) {
	cfg := Default()
	var contents Contents
	if v, err := contents.Labeling(cfg, volume.Config{}); v.Labels != nil || err != nil {
		t.Errorf("a host without SELinux: %+v, %v", v.Labels, err)
	}
	cfg.SELinux.Host = selinux.Host{Enabled: true, Files: "u:r:t:s0"}
	v, err := contents.Labeling(cfg, volume.Config{})
	if err != nil || v.Labels == nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1"}}
	pod.Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}}
	s := volume.Source{Volume: corev1.Volume{Name: "data"}, PersistentVolume: &corev1.PersistentVolume{}, SELinuxMount: true}
	s.PersistentVolume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d"}
	if label, err := v.Labels.Label(t.Context(), volume.LabelRequest{Pod: pod, Source: s}); label != "u:r:t:s0:c1" || err != nil {
		t.Errorf("%q, %v", label, err)
	}
	own := volume.Config{Labels: v.Labels}
	if again, err := contents.Labeling(cfg, own); again.Labels != v.Labels || err != nil {
		t.Errorf("a vendor's labels were replaced: %v", err)
	}
	cfg.SELinux.OneUser = false
	if _, err := contents.Labeling(cfg, volume.Config{}); err == nil {
		t.Error("AllVolumes without OneUser was taken")
	}
}
