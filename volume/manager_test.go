package volume_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

func TestNewChecksItsConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg     volume.Config
		plugins []volume.Plugin
		want    string
	}{
		"relative root":  {volume.Config{RootDir: "var"}, nil, "absolute"},
		"negative width": {volume.Config{RootDir: "/r", Width: -1}, nil, "negative"},
		"same name":      {volume.Config{RootDir: "/r"}, []volume.Plugin{plugins.EmptyDir{}, plugins.EmptyDir{}}, "two plugins"},
		"unsafe name":    {volume.Config{RootDir: "/r"}, []volume.Plugin{fakePlugin{name: ".."}}, "directory"},
	} {
		if _, err := volume.New(tc.cfg, tc.plugins, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		}
	}
}

func TestMountAndUnmountAreIdempotent(t *testing.T) {
	m, root := newManager(t)
	pod := newPod("u1", "")
	for range 2 {
		if path := mustMount(t, m, pod, "data"); path != dataDir(root, "u1") {
			t.Fatalf("mounted at %s", path)
		}
	}
	if got := mounted(t, m, "u1"); !slices.Equal(got, []string{"data"}) {
		t.Fatalf("mounted %v", got)
	}
	write(t, filepath.Join(dataDir(root, "u1"), "deep/file"), "x")
	for range 2 {
		if err := m.Unmount(t.Context(), "u1", "data"); err != nil {
			t.Fatal(err)
		}
		wantGone(t, dataDir(root, "u1"))
		wantGone(t, filepath.Join(root, "pods/u1/plugins/kubernetes.io~empty-dir/data"))
	}
	if got := mounted(t, m, "u1"); len(got) != 0 {
		t.Fatalf("mounted %v", got)
	}
	for range 2 {
		if err := m.RemovePodDir(t.Context(), "u1"); err != nil {
			t.Fatal(err)
		}
		wantGone(t, filepath.Join(root, "pods/u1"))
	}
}

func TestMountErrors(t *testing.T) {
	m, _ := newManager(t)
	pod := newPod("u1", "")
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: "csi", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "none.example"}},
	})
	evil := newPod("../u1", "")
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"csi":  {pod, `MountVolume.SetUp failed for volume "csi" : no volume plugin matched`},
		"gone": {pod, "no volume of that name"},
		"data": {evil, "can not name a directory"},
		"../x": {pod, "can not name a directory"},
	} {
		_, err := m.Mount(t.Context(), tc.pod, name)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		}
		if reasoned.Reason(err, "") != "FailedMount" || !reasoned.Fatal(err) {
			t.Errorf("%s: class %q, fatal %v", name, reasoned.Reason(err, ""), reasoned.Fatal(err))
		}
	}
	for _, uid := range []string{"", "..", "a/b"} {
		if _, err := m.Mounted(t.Context(), uid); err == nil || m.Unmount(t.Context(), uid, "data") == nil || m.RemovePodDir(t.Context(), uid) == nil {
			t.Errorf("UID %q was taken", uid)
		}
	}
}

// TestAfterAKill puts on disk what a kill at each step leaves, and wants the
// next call to finish or undo it.
func TestAfterAKill(t *testing.T) {
	type world struct {
		m    *volume.Manager
		root string
		dir  string
		meta string
	}
	states := map[string]struct {
		leave       func(t *testing.T, w world)
		wantMounted bool
		wantData    bool // the file "kept" is still there after Mount
	}{
		"before anything": {leave: func(*testing.T, world) {}},
		"directory made, mode not set": {leave: func(t *testing.T, w world) {
			if err := os.MkdirAll(w.dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		"not yet ready": {leave: func(t *testing.T, w world) {
			write(t, filepath.Join(w.dir, "kept"), "")
		}, wantData: true},
		"ready": {leave: func(t *testing.T, w world) {
			mustMount(t, w.m, newPod("u", ""), "data")
			write(t, filepath.Join(w.dir, "kept"), "")
		}, wantMounted: true, wantData: true},
		"moved aside": {leave: func(t *testing.T, w world) {
			write(t, filepath.Join(w.dir+".deleting~", "kept"), "")
		}},
		"moved aside, then mounted again": {leave: func(t *testing.T, w world) {
			write(t, filepath.Join(w.dir+".deleting~", "old"), "")
			mustMount(t, w.m, newPod("u", ""), "data")
			write(t, filepath.Join(w.dir, "kept"), "")
		}, wantMounted: true, wantData: true},
		"only the ready file": {leave: func(t *testing.T, w world) {
			write(t, filepath.Join(w.meta, "ready"), "")
		}},
		"torn notes": {leave: func(t *testing.T, w world) {
			write(t, filepath.Join(w.meta, "ready/junk"), "")
			write(t, w.dir+".json", "{")
		}},
	}
	for name, tc := range states {
		setUp := func(t *testing.T) world {
			m, root := newManager(t)
			w := world{m: m, root: root, dir: dataDir(root, "u"), meta: filepath.Join(root, "pods/u/plugins/kubernetes.io~empty-dir/data")}
			tc.leave(t, w)
			return w
		}
		t.Run(name+"/mount", func(t *testing.T) {
			w := setUp(t)
			if got := slices.Contains(mounted(t, w.m, "u"), "data"); got != tc.wantMounted {
				t.Errorf("mounted: %v", got)
			}
			if name == "torn notes" {
				return // Mount may fail here; removal must not
			}
			mustMount(t, w.m, newPod("u", ""), "data")
			info, err := os.Stat(w.dir)
			if err != nil || info.Mode().Perm() != 0o777 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if _, err := os.Stat(filepath.Join(w.dir, "kept")); (err == nil) != tc.wantData {
				t.Errorf("data: %v", err)
			}
			if got := mounted(t, w.m, "u"); !slices.Equal(got, []string{"data"}) {
				t.Errorf("mounted %v", got)
			}
		})
		t.Run(name+"/unmount", func(t *testing.T) {
			w := setUp(t)
			if err := w.m.Unmount(t.Context(), "u", "data"); err != nil {
				t.Fatal(err)
			}
			wantGone(t, w.dir)
			wantGone(t, w.dir+".deleting~")
		})
		t.Run(name+"/remove", func(t *testing.T) {
			w := setUp(t)
			if err := w.m.RemovePodDir(t.Context(), "u"); err != nil {
				t.Fatal(err)
			}
			wantGone(t, filepath.Join(w.root, "pods/u"))
		})
	}
}

func TestForeignFiles(t *testing.T) {
	m, root := newManager(t)
	for _, path := range []string{
		"pods/stray", "pods/u/volumes/stray", "pods/u/volumes/kubernetes.io~secret/token/file",
		"pods/u/volumes/kubernetes.io~host-path/h/x", "pods/u/volume-subpaths/stray", "pods/u/plugins/x", "pods/u/containers/app/log",
	} {
		write(t, filepath.Join(root, path), "")
	}
	outside := t.TempDir()
	write(t, filepath.Join(outside, "keep"), "")
	for _, link := range []string{"pods/linked", "pods/u/volumes/linked", "pods/u/plugins/linked"} {
		if err := os.Symlink(outside, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := mounted(t, m, "u"); len(got) != 0 {
		t.Errorf("mounted %v", got)
	}
	for _, uid := range []string{"u", "linked"} {
		if err := m.RemovePodDir(t.Context(), uid); err != nil {
			t.Error(err)
		}
		wantGone(t, filepath.Join(root, "pods", uid))
	}
	if _, err := os.Stat(filepath.Join(outside, "keep")); err != nil {
		t.Errorf("removed through a symlink: %v", err)
	}
}

// TestMountsInTheWay leaves mounts at several places and wants each named,
// none removed through, and the directory gone once they are.
func TestMountsInTheWay(t *testing.T) {
	beneathtest.NeedMounts(t)
	for name, below := range map[string]string{
		"in an emptyDir":          "volumes/kubernetes.io~empty-dir/data/left",
		"on an emptyDir":          "volumes/kubernetes.io~empty-dir/data",
		"in an unknown plugin's":  "volumes/kubernetes.io~csi/pv/mount",
		"in a hostPath's":         "volumes/kubernetes.io~host-path/h",
		"elsewhere below the pod": "containers/app/x",
	} {
		t.Run(name, func(t *testing.T) {
			m, root := newManager(t)
			mustMount(t, m, newPod("u", ""), "data")
			outside := t.TempDir()
			write(t, filepath.Join(outside, "keep"), "")
			point := filepath.Join(root, "pods/u", below)
			if err := os.MkdirAll(point, 0o755); err != nil {
				t.Fatal(err)
			}
			bind(t, outside, point)

			err := m.RemovePodDir(t.Context(), "u")
			if err == nil || !strings.Contains(err.Error(), point+" is a mount point") {
				t.Errorf("error %v, want %s named", err, point)
			}
			if reasoned.RetryAfter(err, 0) == 0 {
				t.Error("no RetryAfter")
			}
			if reasoned.Reason(err, "") != "FailedUnMount" || reasoned.Fatal(err) {
				t.Errorf("reason %q, fatal %v", reasoned.Reason(err, ""), reasoned.Fatal(err))
			}
			if _, err := os.Stat(filepath.Join(outside, "keep")); err != nil {
				t.Fatalf("removed through a mount: %v", err)
			}
			if err := (volume.HostMounter{}).Unmount(point); err != nil {
				t.Fatal(err)
			}
			if err := m.RemovePodDir(t.Context(), "u"); err != nil {
				t.Fatal(err)
			}
			wantGone(t, filepath.Join(root, "pods/u"))
		})
	}
}

// TestRootDirMayBeASymlink checks that mountinfo, which shows real paths, is
// read rightly then.
func TestRootDirMayBeASymlink(t *testing.T) {
	beneathtest.NeedMounts(t)
	link := filepath.Join(t.TempDir(), "kubelet")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	m, _ := newManager(t, func(c *volume.Config) { c.RootDir = link })
	mustMount(t, m, newPod("u", ""), "data")
	point := filepath.Join(dataDir(link, "u"), "left")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	bind(t, t.TempDir(), point)
	if err := m.Unmount(t.Context(), "u", "data"); err == nil || !strings.Contains(err.Error(), point) {
		t.Errorf("error %v, want %s named", err, point)
	}
}

// fakePlugin takes every volume and does what its functions say.
type fakePlugin struct {
	name  string
	mount func(ctx context.Context) error
}

func (p fakePlugin) Name() string                { return p.name }
func (p fakePlugin) Supports(volume.Source) bool { return true }
func (p fakePlugin) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return volume.MountResult{HostPath: req.Dir}, p.mount(ctx)
}
func (p fakePlugin) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	return volume.MountedResult{Mounted: true, HostPath: req.Dir, ReadOnly: true}, nil
}
func (p fakePlugin) Unmount(context.Context, volume.UnmountRequest) error { return nil }

func TestVendorPluginComesFirstAndWidthHolds(t *testing.T) {
	var running, most, seen atomic.Int32
	var once sync.Once
	full, release := make(chan struct{}), make(chan struct{})
	slow := fakePlugin{name: "vendor/slow", mount: func(ctx context.Context) error {
		n := running.Add(1)
		defer running.Add(-1)
		if old := most.Load(); n > old {
			most.Store(n)
		}
		if n == 2 {
			once.Do(func() { close(full) })
		}
		<-release
		return nil
	}}
	cfg := volume.Config{RootDir: t.TempDir(), Width: 2, Observer: volume.Observer{Done: func(op volume.Operation) {
		if op.Kind == "mount" && op.Plugin == "vendor/slow" && strings.HasPrefix(op.UID, "u") && op.Err == nil {
			seen.Add(1)
		}
	}}}
	m, err := volume.New(cfg, append([]volume.Plugin{slow}, plugins.Default()...), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 5)
	for i := range 5 {
		go func() {
			_, err := m.Mount(t.Context(), newPod(fmt.Sprint("u", i), ""), "data")
			results <- err
		}()
	}
	<-full
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := m.Mount(ctx, newPod("u", ""), "data"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a mount without a slot: %v", err)
	}
	close(release)
	for range 5 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 2 || seen.Load() != 5 {
		t.Errorf("%d at once, %d observed", most.Load(), seen.Load())
	}
	mounts, err := m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{
		Pod: newPod("u", "", corev1.VolumeMount{Name: "data", MountPath: "/d"}), Container: "app"})
	if err != nil || !mounts[0].ReadOnly {
		t.Errorf("%v, %v: a plugin's read-only volume must be read-only", mounts, err)
	}
}

func TestPluginErrorsKeepTheirClass(t *testing.T) {
	far := fakePlugin{name: "vendor/far", mount: func(context.Context) error {
		return reasoned.New("FailedAttachVolume", errors.New("not attached yet")).After(time.Minute)
	}}
	m, err := volume.New(volume.Config{RootDir: t.TempDir()}, []volume.Plugin{far}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Mount(t.Context(), newPod("u", ""), "data")
	if reasoned.Reason(err, "") != "FailedAttachVolume" || reasoned.RetryAfter(err, 0) != time.Minute || reasoned.Fatal(err) {
		t.Errorf("%v lost its class", err)
	}
}
