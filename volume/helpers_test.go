package volume_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

func TestMain(m *testing.M) { os.Exit(beneathtest.Main(m)) }

// newManager makes a manager with the stock plugins on a fresh root directory.
func newManager(t testing.TB, change ...func(*volume.Config)) (*volume.Manager, string) {
	t.Helper()
	cfg := volume.Config{RootDir: t.TempDir()}
	for _, c := range change {
		c(&cfg)
	}
	m, err := volume.New(cfg, plugins.Default(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m, cfg.RootDir
}

// newPod has the emptyDir "data" and, unless host is empty, the hostPath "host".
func newPod(uid, host string, mounts ...corev1.VolumeMount) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.UID, pod.Namespace, pod.Name = types.UID(uid), "ns", "pod"
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if host != "" {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}},
		})
	}
	pod.Spec.Containers = []corev1.Container{{Name: "app", VolumeMounts: mounts}}
	return pod
}

func dataDir(root, uid string) string {
	return filepath.Join(root, "pods", uid, "volumes/kubernetes.io~empty-dir/data")
}

func mustMount(t testing.TB, m *volume.Manager, pod *corev1.Pod, name string) string {
	t.Helper()
	path, err := m.Mount(t.Context(), pod, name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func mounted(t testing.TB, m *volume.Manager, uid string) []string {
	t.Helper()
	names, err := m.Mounted(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantGone(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}

// bind mounts source on target for the time of the test.
func bind(t testing.TB, source, target string) {
	t.Helper()
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}
