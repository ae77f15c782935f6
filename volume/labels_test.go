package volume_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// labelShelf is a shelf that notes with which labels it mounts.
type labelShelf struct {
	shelf
	labels *[]string
}

func (s labelShelf) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	*s.labels = append(*s.labels, req.SELinuxLabel)
	return s.shelf.Mount(ctx, req)
}

// labels give each claim the label that is set.
type labels struct {
	label    string
	err      error
	released []string
}

func (l *labels) Label(_ context.Context, req volume.LabelRequest) (string, error) {
	if req.PersistentVolume == nil {
		return "", nil
	}
	return l.label, l.err
}

func (l *labels) Release(uid, name string) { l.released = append(l.released, uid+"/"+name) }

// TestLabels: a label reaches the plugin, is known after a restart, and what has
// one is not relabeled by the runtime.
func TestLabels(t *testing.T) {
	root := t.TempDir()
	host := t.TempDir()
	with := &labels{label: "u:r:t:s0:c1"}
	var seen []string
	manager := func(l volume.Labels) *volume.Manager {
		m, err := volume.New(volume.Config{RootDir: root, Claims: &bound{}, Labels: l}, append(plugins.Default(), labelShelf{labels: &seen}), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	pod := claimingPod("u1", "db=disk")
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}})
	pod.Spec.Volumes[1].PersistentVolumeClaim.ReadOnly = false
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "data", MountPath: "/data"}, corev1.VolumeMount{Name: "host", MountPath: "/host"})
	m := manager(with)
	for _, name := range []string{"db", "data", "host"} {
		mustMount(t, m, pod, name)
	}
	relabeled := func(m *volume.Manager) (list []bool) {
		mounts, err := containerMounts(t, m, pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, mount := range mounts {
			list = append(list, mount.SELinuxRelabel)
		}
		return list
	}
	if got := relabeled(m); !slices.Equal(got, []bool{false, true, false}) || !slices.Equal(seen, []string{with.label}) {
		t.Errorf("relabeled %v, mounted with %q", got, seen)
	}
	later := manager(nil) // as after a restart; nobody has to work the label out again
	if got := relabeled(later); !slices.Equal(got, []bool{false, true, false}) {
		t.Errorf("after a restart %v", got)
	}
	if list, err := later.Recorded(); err != nil || len(list) != 1 || list[0].SELinuxLabel != with.label {
		t.Errorf("recorded %+v, %v", list, err)
	}
	if err := m.Unmount(t.Context(), "u1", "db"); err != nil || !slices.Equal(with.released, []string{"u1/db"}) {
		t.Errorf("%v, released %q", err, with.released)
	}

	with.err = reasoned.New("FailedMount", errors.New("conflicting labels")).After(mountedAgain)
	_, err := m.Mount(t.Context(), pod, "db")
	if err == nil || reasoned.Reason(err, "") != "FailedMount" || reasoned.RetryAfter(err, 0) != mountedAgain || !strings.Contains(err.Error(), "conflicting labels") {
		t.Errorf("error %v", err)
	}
	with.err, with.label = nil, ""
	mustMount(t, m, pod, "db")
	if got := relabeled(m); !slices.Equal(got, []bool{true, true, false}) {
		t.Errorf("without a label %v", got)
	}
}

const mountedAgain = 7_000_000_000
