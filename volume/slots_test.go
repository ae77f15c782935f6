package volume_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// servers are NFS servers, of which one does not answer.
type servers struct {
	plugins.HostMounts

	asked chan string // gets whom the mount waits for
}

func (s *servers) Mount(ctx context.Context, source, _, _ string, _ []string) error {
	if source != "hung:/" {
		return nil
	}
	s.asked <- source
	<-ctx.Done()
	return ctx.Err()
}

func (*servers) List() ([]plugins.Mounted, error) { return nil, nil }

func TestAHungServerHoldsUpNoOther(t *testing.T) {
	hung := &servers{asked: make(chan string)}
	m, err := volume.New(volume.Config{RootDir: t.TempDir(), Width: 1}, []volume.Plugin{plugins.NFS{Mounts: hung}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pod := newPod("u1", "")
	for _, server := range []string{"hung", "good"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: server, VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: server, Path: "/"}}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := m.Mount(ctx, pod, "hung")
		ended <- err
	}()
	<-hung.asked
	mustMount(t, m, pod, "good")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
