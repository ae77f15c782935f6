package guest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
	"nodekit.dev/volume/stats"
)

// TestProjectQuotas: the emptyDirs of a pod with a user namespace, on an ext4 with
// project quotas, are measured without a walk, and as a walk does.
func TestProjectQuotas(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "disk")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 128<<20); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image)
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "mount", "-o", "loop,prjquota", image, root)
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })

	var logs bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logs, nil))
	projects := &stats.Projects{}
	m, err := volume.New(volume.Config{RootDir: root}, []volume.Plugin{projects.Around(plugins.EmptyDir{}, log)}, log)
	if err != nil {
		t.Fatal(err)
	}
	host := false
	pod := &corev1.Pod{}
	pod.UID, pod.Namespace, pod.Name = "u", "ns", "p"
	pod.Spec.HostUsers = &host
	for _, name := range []string{"a", "b"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		for range 2 { // the second call finds its project
			if _, err := m.Mount(t.Context(), pod, name); err != nil || logs.Len() > 0 {
				t.Fatalf("%v\n%s", err, &logs)
			}
		}
	}
	file := filepath.Join(root, "pods/u/volumes/kubernetes.io~empty-dir/a/sub/ten")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 10<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	unix.Sync()

	quota, walked := figures(t, m, pod, true), figures(t, m, pod, false)
	for _, name := range []string{"a", "b"} {
		q, w := quota[name], walked[name]
		t.Logf("%s: %d bytes in %d inodes", name, *q.Used, *q.InodesUsed)
		if *q.Used != *w.Used || *q.InodesUsed != *w.InodesUsed || *q.Capacity != *w.Capacity {
			t.Errorf("%s: quota %d bytes in %d of %d, walk %d in %d of %d", name, *q.Used, *q.InodesUsed, *q.Capacity, *w.Used, *w.InodesUsed, *w.Capacity)
		}
	}
	if *quota["a"].Used < 10<<20 || *quota["b"].Used >= 1<<20 {
		t.Errorf("a: %d, b: %d", *quota["a"].Used, *quota["b"].Used)
	}
	if err := m.RemovePodDir(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
}

// figures measures the pod's volumes once, from quotas or by a walk.
func figures(t *testing.T, m *volume.Manager, pod *corev1.Pod, quotas bool) map[string]stats.Stats {
	t.Helper()
	sources := make(chan string, 100)
	cfg := stats.Config{Period: 50 * time.Millisecond, Quotas: quotas, Observer: stats.Observer{Measured: func(one stats.Measured) {
		select {
		case sources <- one.Source:
		default:
		}
	}}}
	s, err := stats.New(cfg, m, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() { cancel(); <-done }()
	s.Follow(pod)
	eventually(t, "both volumes are measured", func(context.Context) error {
		if len(s.Snapshot("u")) < 2 {
			return os.ErrNotExist
		}
		return nil
	})
	want := "du"
	if quotas {
		want = "fsquota"
	}
	if got := <-sources; !strings.EqualFold(got, want) {
		t.Errorf("measured by %s, want %s", got, want)
	}
	out := map[string]stats.Stats{}
	for _, one := range s.Snapshot("u") {
		out[one.Volume] = one
	}
	return out
}
