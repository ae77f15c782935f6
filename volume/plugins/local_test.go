package plugins_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/needtest"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// recordingMounts are those of the host; what is asked of them is kept.
type recordingMounts struct {
	plugins.HostMounts

	mu      sync.Mutex
	formats int
	args    [][]string
}

func (m *recordingMounts) FormatAndMount(device, target, fsType string, options []string) error {
	m.mu.Lock()
	m.formats++
	m.mu.Unlock()
	return m.HostMounts.FormatAndMount(device, target, fsType, options)
}

func (m *recordingMounts) Mount(ctx context.Context, source, target, fsType string, options []string) error {
	m.mu.Lock()
	m.args = append(m.args, append([]string{source, fsType}, options...))
	m.mu.Unlock()
	return m.HostMounts.Mount(ctx, source, target, fsType, options)
}

// rig mounts volumes of one plugin for pods, as the manager would.
type rig struct {
	t      *testing.T
	plugin volume.Plugin
	root   string
}

func newRig(t *testing.T, p volume.Plugin) rig {
	t.Helper()
	beneathtest.NeedMounts(t)
	return rig{t, p, t.TempDir()}
}

func (r rig) dir(pod string) string {
	return filepath.Join(r.root, "pods", pod, "volumes", strings.ReplaceAll(r.plugin.Name(), "/", "~"), "pv")
}

func (r rig) meta(pod string) string { return filepath.Join(r.root, "pods", pod, "plugins/p/pv") }

func (r rig) mount(pod string, s volume.Source) (volume.MountResult, error) {
	owner := &corev1.Pod{}
	owner.Namespace, owner.Name = "ns", pod
	return r.plugin.Mount(r.t.Context(), volume.MountRequest{Pod: owner, Source: s, Dir: r.dir(pod), MetaDir: r.meta(pod)})
}

func (r rig) mounted(pod string, s volume.Source) volume.MountedResult {
	r.t.Helper()
	got, err := r.plugin.Mounted(r.t.Context(), volume.MountedRequest{Source: s, Dir: r.dir(pod), MetaDir: r.meta(pod)})
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r rig) unmount(pod string) error {
	r.t.Helper()
	mounts, err := volume.HostMounter{}.MountPoints(r.dir(pod))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.plugin.Unmount(r.t.Context(), volume.UnmountRequest{Volume: "pv", Dir: r.dir(pod), MetaDir: r.meta(pod), Mounts: mounts})
}

func local(path string, change ...func(*corev1.PersistentVolume)) volume.Source {
	pv := &corev1.PersistentVolume{}
	pv.Name = "pv"
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: path}
	for _, c := range change {
		c(pv)
	}
	return volume.Source{PersistentVolume: pv}
}

func TestLocalDirectory(t *testing.T) {
	r := newRig(t, plugins.NewLocal(nil))
	path := t.TempDir()
	s := local(path)
	got, err := r.mount("a", s)
	if err != nil || got.HostPath != r.dir("a") || !got.SetOwner {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(r.dir("a"), "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The second pod shares it, read-only, and does not change whose it is.
	s.ReadOnly = true
	if got, err = r.mount("b", s); err != nil || got.SetOwner {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(r.dir("b"), "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("a write to a read-only volume: %v", err)
	}
	if m := r.mounted("b", s); !m.Mounted || !m.ReadOnly {
		t.Errorf("%+v", m)
	}
	for _, pod := range []string{"a", "b", "a"} { // and once more, as after a crash
		if err := r.unmount(pod); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(r.dir(pod)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left: %v", err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(path, "file")); string(text) != "kept" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestLocalMountThatStoppedHalfWay(t *testing.T) {
	mounts := &recordingMounts{}
	r := newRig(t, plugins.NewLocal(mounts))
	s := local(t.TempDir(), func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = []string{"noexec", "nodev"} })
	if _, err := r.mount("a", s); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "", "bind", "remount", "nodev", "noexec"}; !slices.Equal(mounts.args[0], want) {
		t.Errorf("mounted with %q", mounts.args)
	}
	// The bind mount is there, its options may not be.
	if err := os.Remove(filepath.Join(r.meta("a"), "ready")); err != nil {
		t.Fatal(err)
	}
	if r.mounted("a", s).Mounted {
		t.Error("half a mount counts as one")
	}
	for range 2 {
		if _, err := r.mount("a", s); err != nil {
			t.Fatal(err)
		}
	}
	points, err := volume.HostMounter{}.MountPoints(r.dir("a"))
	if err != nil || len(points) != 1 || len(mounts.args) != 2 || !r.mounted("a", s).Mounted {
		t.Errorf("mount points %v, %v; mount was run %d times", points, err, len(mounts.args))
	}
	var st unix.Statfs_t
	if err := unix.Statfs(r.dir("a"), &st); err != nil || st.Flags&unix.ST_NOEXEC == 0 {
		t.Errorf("flags %x, %v", st.Flags, err)
	}
	if err := r.unmount("a"); err != nil {
		t.Fatal(err)
	}
}

func TestLocalRefuses(t *testing.T) {
	r := newRig(t, plugins.NewLocal(nil))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	block := func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	for want, s := range map[string]volume.Source{
		"only directory and block device are supported":   local(file),
		"invalid path: /a/../etc must not contain '..'":   local("/a/../etc"),
		"stat /does/not/exist: no such file or directory": local("/does/not/exist"),
		"/dev/null is not a block device":                 local("/dev/null", block),
		"only directory and block device are supported ":  local("/dev/null"),
	} {
		if _, err := r.mount("a", s); err == nil || err.Error() != strings.TrimSpace(want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := r.unmount("a"); err != nil {
			t.Errorf("%s: unmount: %v", want, err)
		}
	}
}

// newLoop gives a loop device with nothing on it.
func newLoop(t *testing.T) string {
	t.Helper()
	beneathtest.NeedMounts(t)
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 32<<20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		needtest.SkipOrFail(t, "needs loop devices: "+err.Error())
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", device).CombinedOutput(); err != nil {
			t.Errorf("losetup -d %s: %v: %s", device, err, out)
		}
	})
	return device
}

func TestLocalDevice(t *testing.T) {
	device := newLoop(t)
	mounts := &recordingMounts{}
	r := newRig(t, plugins.NewLocal(mounts))
	s := local(device, func(pv *corev1.PersistentVolume) { pv.Spec.Local.FSType = new("ext4") })

	// An empty device is not formatted for who may only read.
	readOnly := s
	readOnly.ReadOnly = true
	if _, err := r.mount("a", readOnly); err == nil || !strings.Contains(err.Error(), "cannot mount unformatted disk") {
		t.Fatalf("read-only: %v", err)
	}
	// Pods that start together make one file system.
	var wait sync.WaitGroup
	pods := []string{"a", "b", "c"}
	for _, pod := range pods {
		wait.Go(func() {
			if _, err := r.mount(pod, s); err != nil {
				t.Errorf("pod %s: %v", pod, err)
			}
		})
	}
	wait.Wait()
	if mounts.formats != 2 { // with the one that was refused
		t.Errorf("asked to format %d times", mounts.formats)
	}
	if err := os.WriteFile(filepath.Join(r.dir("a"), "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(r.dir("c"), "file")); string(text) != "kept" {
		t.Errorf("pod c reads %q, %v", text, err)
	}
	for _, pod := range pods {
		if err := r.unmount(pod); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.mount("d", s); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(r.dir("d"), "file")); string(text) != "kept" {
		t.Errorf("after all unmounted it reads %q, %v", text, err)
	}
	if err := r.unmount("d"); err != nil {
		t.Fatal(err)
	}
}

func TestLocalBlock(t *testing.T) {
	device := newLoop(t)
	r := newRig(t, plugins.NewLocal(nil))
	s := local(device, func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) })
	for range 2 {
		if got, err := r.mount("a", s); err != nil || got.HostPath != r.dir("a") || got.SetOwner {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if target, err := os.Readlink(r.dir("a")); target != device || !r.mounted("a", s).Mounted {
		t.Errorf("link to %s, %v", target, err)
	}
	for range 2 {
		if err := r.unmount("a"); err != nil {
			t.Fatal(err)
		}
	}
	if r.mounted("a", s).Mounted {
		t.Error("still mounted")
	}
}

func TestHostPathOfAPersistentVolume(t *testing.T) {
	dir, kind := t.TempDir(), corev1.HostPathDirectoryOrCreate
	pv := &corev1.PersistentVolume{}
	pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: filepath.Join(dir, "new"), Type: &kind}
	s := volume.Source{PersistentVolume: pv, ReadOnly: true}
	p := plugins.HostPath{}
	if got, err := p.Mount(t.Context(), volume.MountRequest{Pod: &corev1.Pod{}, Source: s}); err != nil || got.HostPath != pv.Spec.HostPath.Path || got.SetOwner {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := p.Mounted(t.Context(), volume.MountedRequest{Source: s}); err != nil || !got.Mounted || !got.ReadOnly || got.HostPath != pv.Spec.HostPath.Path {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := os.Stat(pv.Spec.HostPath.Path); err != nil {
		t.Error(err)
	}
}

// server is a host on which mount.nfs says what it is told to.
type server struct {
	plugins.HostMounts

	args    []string
	err     error
	mounted []plugins.Mounted
}

func (s *server) Mount(ctx context.Context, source, target, fsType string, options []string) error {
	s.args = append([]string{source, target, fsType}, options...)
	if s.err == nil {
		s.mounted = append(s.mounted, plugins.Mounted{Target: target, Source: source, Root: "/"})
	}
	if errors.Is(s.err, context.DeadlineExceeded) {
		<-ctx.Done() // a server that does not answer
		return ctx.Err()
	}
	return s.err
}

func (s *server) Unmount(_ context.Context, target string) error {
	s.mounted = slices.DeleteFunc(s.mounted, func(m plugins.Mounted) bool { return m.Target == target })
	return s.err
}

func (s *server) List() ([]plugins.Mounted, error) { return s.mounted, nil }

func TestNFS(t *testing.T) {
	pv := &corev1.PersistentVolume{}
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "fd00::1", Path: "/export"}
	pv.Spec.MountOptions = []string{"nfsvers=4.2", "hard"}
	inline := func(readOnly bool) volume.Source {
		return volume.Source{Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nas.example", Path: "/a", ReadOnly: readOnly}}}}
	}
	for name, tc := range map[string]struct {
		source   volume.Source
		want     []string
		readOnly bool
	}{
		"inline":           {inline(false), []string{"nas.example:/a"}, false},
		"inline read-only": {inline(true), []string{"nas.example:/a", "ro"}, true},
		"claim":            {volume.Source{PersistentVolume: pv}, []string{"[fd00::1]:/export", "hard", "nfsvers=4.2"}, false},
		"claim read-only":  {volume.Source{PersistentVolume: pv, ReadOnly: true}, []string{"[fd00::1]:/export", "hard", "nfsvers=4.2", "ro"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			host := &server{}
			r := rig{t, plugins.NFS{Mounts: host}, t.TempDir()}
			if !r.plugin.Supports(tc.source) || r.mounted("a", tc.source).Mounted {
				t.Fatal("not supported, or mounted before")
			}
			for range 2 {
				if got, err := r.mount("a", tc.source); err != nil || got.HostPath != r.dir("a") || got.SetOwner {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			want := slices.Concat(tc.want[:1], []string{r.dir("a"), "nfs"}, tc.want[1:])
			if !slices.Equal(host.args, want) || len(host.mounted) != 1 {
				t.Errorf("mounted %q, want %q", host.args, want)
			}
			if m := r.mounted("a", tc.source); !m.Mounted || m.ReadOnly != tc.readOnly {
				t.Errorf("%+v", m)
			}
			if err := r.plugin.Unmount(t.Context(), volume.UnmountRequest{Dir: r.dir("a"), MetaDir: r.meta("a"), Mounts: []string{r.dir("a")}}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(r.dir("a")); !errors.Is(err, fs.ErrNotExist) || len(host.mounted) != 0 {
				t.Errorf("left: %v, %v", host.mounted, err)
			}
		})
	}
}

// No server is here: the words are those of the real mount(8).
func TestNFSWithoutAServer(t *testing.T) {
	r := newRig(t, plugins.NFS{})
	s := volume.Source{Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "127.0.0.1", Path: "/none"}}}}
	_, err := r.mount("a", s)
	if err == nil || !strings.HasPrefix(err.Error(), "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs 127.0.0.1:/none ") ||
		!strings.Contains(err.Error(), "Output: mount") {
		t.Errorf("%v", err)
	}
	if r.mounted("a", s).Mounted {
		t.Error("mounted")
	}
	if err := r.unmount("a"); err != nil {
		t.Error(err)
	}
}

func TestRemovedVolumesSayWhatToUse(t *testing.T) {
	for want, v := range map[string]corev1.VolumeSource{
		"awsElasticBlockStore volumes are not supported any more: use a PersistentVolume of the CSI driver ebs.csi.aws.com": {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
		"glusterfs volumes are not supported any more: use a CSI driver of its vendor, or a volume plugin of your own":      {Glusterfs: &corev1.GlusterfsVolumeSource{}},
		"git-repo volume plugin has been disabled; use an emptyDir that an init container clones the repository into":       {GitRepo: &corev1.GitRepoVolumeSource{}},
		"this agent has no iscsi volumes: use a PersistentVolume of the CSI driver iscsi.csi.k8s.io":                        {ISCSI: &corev1.ISCSIVolumeSource{}},
		"this agent has no flexVolume volumes: use a CSI driver of its vendor, or a volume plugin of your own":              {FlexVolume: &corev1.FlexVolumeSource{}},
	} {
		s := volume.Source{Volume: corev1.Volume{VolumeSource: v}}
		_, err := plugins.Removed{}.Mount(t.Context(), volume.MountRequest{Source: s})
		if !(plugins.Removed{}).Supports(s) || err == nil || err.Error() != want || !reasoned.Fatal(err) || reasoned.Reason(err, "") != "FailedMount" {
			t.Errorf("%v, want %s", err, want)
		}
	}
	pv := &corev1.PersistentVolume{}
	pv.Spec.RBD = &corev1.RBDPersistentVolumeSource{}
	if _, err := (plugins.Removed{}).Mount(t.Context(), volume.MountRequest{Source: volume.Source{PersistentVolume: pv}}); err == nil || !strings.Contains(err.Error(), "rbd.csi.ceph.com") {
		t.Errorf("of a claim: %v", err)
	}
	if (plugins.Removed{}).Supports(volume.Source{Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}}}) {
		t.Error("csi is not removed")
	}
}
