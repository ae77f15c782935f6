package plugins_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// pulls are images that were pulled.
type pulls struct {
	err   error
	asked []corev1.ImageVolumeSource
}

func (p *pulls) Image(_ context.Context, _ *corev1.Pod, source corev1.ImageVolumeSource) (string, error) {
	p.asked = append(p.asked, source)
	return "sha256:1", p.err
}

func TestImageVolume(t *testing.T) {
	images, root := &pulls{}, t.TempDir()
	newManager := func() *volume.Manager {
		m, err := volume.New(volume.Config{RootDir: root}, plugins.Stock(plugins.Sources{Images: images}), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	pod := &corev1.Pod{}
	pod.UID = "u1"
	source := corev1.ImageVolumeSource{Reference: "models:1", PullPolicy: corev1.PullNever}
	pod.Spec.Volumes = []corev1.Volume{{Name: "models", VolumeSource: corev1.VolumeSource{Image: &source}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "models", MountPath: "/m", SubPath: "a/b"}}}}
	req := volume.ContainerMountsRequest{Pod: pod, Container: "c"}

	images.err = reasoned.New("ErrImagePull", errors.New("no such image"))
	if _, err := newManager().Mount(t.Context(), pod, "models"); reasoned.Reason(err, "") != "ErrImagePull" {
		t.Errorf("a pull that fails: %v", err)
	}
	if _, err := newManager().ContainerMounts(t.Context(), req); err == nil {
		t.Error("a container would start without its image volume")
	}
	images.err = nil
	for range 2 {
		if _, err := newManager().Mount(t.Context(), pod, "models"); err != nil {
			t.Fatal(err)
		}
	}
	if images.asked[0] != source {
		t.Errorf("asked for %+v", images.asked[0])
	}
	m := newManager() // one that knows nothing
	if names, err := m.Mounted(t.Context(), "u1"); len(names) != 1 || err != nil {
		t.Errorf("mounted are %v, %v", names, err)
	}
	mounts, err := m.ContainerMounts(t.Context(), req)
	want := volume.ContainerMount{Image: "sha256:1", ImageName: "models:1", ImageSubPath: "a/b", ContainerPath: "/m", ReadOnly: true, Propagation: "private"}
	if err != nil || len(mounts) != 1 || mounts[0] != want {
		t.Errorf("%+v, %v", mounts, err)
	}
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = "../x"
	if _, err := m.ContainerMounts(t.Context(), req); err == nil || !strings.Contains(err.Error(), "must not contain '..'") {
		t.Errorf("a subPath that leads out: %v", err)
	}
	if err := errors.Join(m.Unmount(t.Context(), "u1", "models"), m.RemovePodDir(t.Context(), "u1")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(root, "pods/u1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
}
