package volume_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/needtest"
	"nodekit.dev/volume"
)

// owned is a plugin whose volumes hold files before they are mounted, and that
// leaves their ownership to the manager.
type owned struct {
	files int
	group *volume.FSGroup // of the last Mount
	then  func()          // at the end of Mount; may be nil
}

func (*owned) Name() string                  { return "example.com/owned" }
func (*owned) Supports(s volume.Source) bool { return s.Volume.EmptyDir != nil }

func (p *owned) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	p.group = req.FSGroup
	if err := os.MkdirAll(req.Dir, 0o700); err != nil {
		return volume.MountResult{}, err
	}
	for i := range p.files {
		path := filepath.Join(req.Dir, fmt.Sprint("f", i))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return volume.MountResult{}, err
		}
	}
	if p.then != nil {
		p.then()
	}
	return volume.MountResult{HostPath: req.Dir, SetOwner: true}, nil
}

func (*owned) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	_, err := os.Stat(req.Dir)
	return volume.MountedResult{Mounted: err == nil, HostPath: req.Dir}, nil
}

func (*owned) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return volume.RemoveDir(ctx, req.Dir)
}

func newOwned(t *testing.T, p *owned) (*volume.Manager, string, *corev1.Pod) {
	t.Helper()
	if os.Geteuid() != 0 {
		needtest.SkipOrFail(t, "needs root to give files to a group")
	}
	root := t.TempDir()
	m, err := volume.New(volume.Config{RootDir: root}, []volume.Plugin{p}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pod := newPod("uid", "", corev1.VolumeMount{Name: "data", MountPath: "/data"})
	group, policy := int64(4242), corev1.FSGroupChangeOnRootMismatch
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group, FSGroupChangePolicy: &policy}
	return m, root, pod
}

func groupOf(t *testing.T, path string) uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Gid
}

func TestFilesAreGivenToTheGroup(t *testing.T) {
	p := &owned{files: 300}
	m, root, pod := newOwned(t, p)
	dir := mustMount(t, m, pod, "data")
	if want := (volume.FSGroup{ID: 4242, Policy: corev1.FSGroupChangeOnRootMismatch}); p.group == nil || *p.group != want {
		t.Errorf("the plugin was told %+v", p.group)
	}
	for _, name := range []string{"", "f0", "f299"} {
		if got := groupOf(t, filepath.Join(dir, name)); got != 4242 {
			t.Errorf("%q has the group %d", name, got)
		}
	}
	// What containers do to it then stays, also when the agent mounts again.
	if err := os.Chown(dir, 0, 7); err != nil {
		t.Fatal(err)
	}
	mustMount(t, m, pod, "data")
	if got := groupOf(t, dir); got != 7 {
		t.Errorf("a mount of what is mounted gave it to %d", got)
	}
	if err := m.RemovePodDir(t.Context(), "uid"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, filepath.Join(root, "pods/uid"))
}

func TestVolumesWithoutAGroupKeepTheirOwner(t *testing.T) {
	p := &owned{files: 1}
	m, _, pod := newOwned(t, p)
	pod.Spec.SecurityContext.FSGroup = nil
	dir := mustMount(t, m, pod, "data")
	if p.group != nil || groupOf(t, dir) != 0 || groupOf(t, filepath.Join(dir, "f0")) != 0 {
		t.Errorf("the plugin was told %+v, group %d", p.group, groupOf(t, dir))
	}
	pod.Spec.SecurityContext.FSGroup, pod.Spec.SecurityContext.FSGroupChangePolicy = new(int64), nil
	pod.UID = "other"
	mustMount(t, m, pod, "data")
	if p.group == nil || p.group.Policy != corev1.FSGroupChangeAlways {
		t.Errorf("without a policy the plugin is told %+v", p.group)
	}
}

// A volume whose files were not all given away is not mounted, whoever asks.
func TestOwnershipThatWasCutOffIsFinished(t *testing.T) {
	p := &owned{files: 2000}
	m, root, pod := newOwned(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	p.then = cancel // between the mount and the change of its files
	if _, err := m.Mount(ctx, pod, "data"); err == nil || !strings.Contains(err.Error(), "applyFSGroup failed") {
		t.Fatalf("a mount that was cut off: %v", err)
	}
	p.then = nil
	again, err := volume.New(volume.Config{RootDir: root}, []volume.Plugin{p}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if names := mounted(t, again, "uid"); len(names) != 0 {
		t.Errorf("mounted are %v", names)
	}
	if _, err := again.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: "app"}); err == nil {
		t.Error("a container would start with a volume that it may not read")
	}
	dir := mustMount(t, again, pod, "data")
	for i := range p.files {
		if got := groupOf(t, filepath.Join(dir, fmt.Sprint("f", i))); got != 4242 {
			t.Fatalf("file %d has the group %d", i, got)
		}
	}
	if names := mounted(t, again, "uid"); len(names) != 1 {
		t.Errorf("mounted are %v", names)
	}
	if err := again.Unmount(t.Context(), "uid", "data"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, filepath.Join(root, "pods/uid/volume-owners/data"))
}

func TestSlowOwnershipIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		stop := volume.TellSlow(t, func(_ *corev1.Pod, message string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, message)
		})
		count := func() int { mu.Lock(); defer mu.Unlock(); return len(told) }
		<-time.After(29 * time.Second)
		if synctest.Wait(); count() != 0 {
			t.Errorf("told early: %q", told)
		}
		<-time.After(2*time.Minute + 2*time.Second)
		synctest.Wait()
		stop()
		<-time.After(time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 3 || !strings.HasPrefix(told[0], "Setting volume ownership for uid/volumes/p/v is taking longer than expected") ||
			told[2] != "Setting volume ownership for uid/volumes/p/v, processed 5 files." {
			t.Errorf("told %q", told)
		}
	})
}
