package plugins_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/needtest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

func hostPathRequest(path string, kind *corev1.HostPathType) volume.MountRequest {
	return volume.MountRequest{Pod: &corev1.Pod{}, Source: volume.Source{Volume: corev1.Volume{
		Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: kind}}}}}
}

// hostTree makes one thing of each kind that a test without devices can make.
func hostTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	for link, target := range map[string]string{"link-dir": "dir", "link-file": "file", "link-sock": "sock", "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHostPathTypes(t *testing.T) {
	// What each type accepts of the things in hostTree; "new" does not exist.
	accepts := map[corev1.HostPathType]string{
		corev1.HostPathUnset:             "dir file fifo sock link-dir link-file link-sock dangling new new/deep /dev/null",
		corev1.HostPathDirectory:         "dir link-dir",
		corev1.HostPathDirectoryOrCreate: "dir link-dir new new/deep",
		corev1.HostPathFile:              "file link-file",
		// Through a dangling link the file is made where it points, as open(2) does.
		corev1.HostPathFileOrCreate: "file link-file new dangling",
		corev1.HostPathSocket:       "sock link-sock",
		corev1.HostPathCharDev:      "/dev/null",
		corev1.HostPathBlockDev:     "",
	}
	nouns := map[corev1.HostPathType]string{
		corev1.HostPathDirectory: "directory", corev1.HostPathDirectoryOrCreate: "directory",
		corev1.HostPathFile: "file", corev1.HostPathFileOrCreate: "file", corev1.HostPathSocket: "socket file",
		corev1.HostPathCharDev: "character device", corev1.HostPathBlockDev: "block device",
	}
	for kind, accepted := range accepts {
		for _, name := range strings.Fields(accepts[corev1.HostPathUnset]) {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				path := name
				if !filepath.IsAbs(name) {
					path = filepath.Join(hostTree(t), name)
				}
				result, err := plugins.HostPath{}.Mount(t.Context(), hostPathRequest(path, &kind))
				want := false
				for _, ok := range strings.Fields(accepted) {
					want = want || ok == name
				}
				if (err == nil) != want {
					t.Fatalf("error %v, want acceptance %v", err, want)
				}
				if err == nil && result.HostPath != path {
					t.Errorf("path %s", result.HostPath)
				}
				_, exists := os.Stat(path)
				if err != nil && exists == nil {
					if text := "hostPath type check failed: " + path + " is not a " + nouns[kind]; err.Error() != text {
						t.Errorf("text %q, want %q", err, text)
					}
				}
			})
		}
	}
}

func TestHostPathBlockDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
		needtest.SkipOrFail(t, "needs root to make a device node: "+err.Error())
	}
	for kind, want := range map[corev1.HostPathType]bool{corev1.HostPathBlockDev: true, corev1.HostPathCharDev: false, corev1.HostPathFile: false} {
		if _, err := (plugins.HostPath{}).Mount(t.Context(), hostPathRequest(path, &kind)); (err == nil) != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestHostPathCreates(t *testing.T) {
	old := unix.Umask(0o022) // the modes are for the usual umask
	defer unix.Umask(old)
	dir := t.TempDir()
	for kind, want := range map[corev1.HostPathType]fs.FileMode{
		corev1.HostPathDirectoryOrCreate: fs.ModeDir | 0o755, corev1.HostPathFileOrCreate: 0o644,
	} {
		path := filepath.Join(dir, string(kind))
		for range 2 {
			if _, err := (plugins.HostPath{}).Mount(t.Context(), hostPathRequest(path, &kind)); err != nil {
				t.Fatal(err)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", kind, info, err)
		}
	}
	noDir := corev1.HostPathFileOrCreate
	if _, err := (plugins.HostPath{}).Mount(t.Context(), hostPathRequest(filepath.Join(dir, "no/file"), &noDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FileOrCreate made the parent directory: %v", err)
	}
}

func TestHostPathRefuses(t *testing.T) {
	unknown := corev1.HostPathType("Pipe")
	for path, tc := range map[string]struct {
		kind *corev1.HostPathType
		want string
	}{
		"/a/../etc": {nil, "invalid HostPath `/a/../etc`: must not contain '..'"},
		"/etc":      {&unknown, "Pipe is an invalid volume type"},
	} {
		if _, err := (plugins.HostPath{}).Mount(t.Context(), hostPathRequest(path, tc.kind)); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %q", path, err, tc.want)
		}
	}
}

func TestEmptyDirModeAndGroup(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	group := int64(os.Getegid())
	if os.Geteuid() == 0 {
		group = 4242
	}
	for name, tc := range map[string]struct {
		security *corev1.PodSecurityContext
		mode     fs.FileMode
		group    int64
	}{
		"plain":    {nil, fs.ModeDir | 0o777, int64(os.Getegid())},
		"no group": {&corev1.PodSecurityContext{}, fs.ModeDir | 0o777, int64(os.Getegid())},
		"fsGroup":  {&corev1.PodSecurityContext{FSGroup: &group}, fs.ModeDir | fs.ModeSetgid | 0o777, group},
	} {
		root := t.TempDir()
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: tc.security}}
		req := volume.MountRequest{Pod: pod, Source: emptyDir(corev1.EmptyDirVolumeSource{}), Dir: filepath.Join(root, "v"), MetaDir: filepath.Join(root, "meta")}
		if _, err := (plugins.EmptyDir{}).Mount(t.Context(), req); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		info, err := os.Stat(req.Dir)
		var st unix.Stat_t
		if err := errors.Join(err, unix.Stat(req.Dir, &st)); err != nil || info.Mode() != tc.mode || int64(st.Gid) != tc.group {
			t.Errorf("%s: mode %v, group %d, %v", name, info.Mode(), st.Gid, err)
		}
		// What containers did to it later stays.
		if err := os.Chmod(req.Dir, 0o711); err != nil {
			t.Fatal(err)
		}
		if _, err := (plugins.EmptyDir{}).Mount(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(req.Dir); info.Mode().Perm() != 0o711 {
			t.Errorf("%s: a mount of what is mounted changed the mode to %v", name, info.Mode())
		}
	}
}

func TestEmptyDirDoesNotTakeAFileOrLinkForItsDirectory(t *testing.T) {
	root := t.TempDir()
	req := volume.MountRequest{Pod: &corev1.Pod{}, Source: emptyDir(corev1.EmptyDirVolumeSource{}), Dir: filepath.Join(root, "v"), MetaDir: filepath.Join(root, "meta")}
	if err := os.Symlink("/etc", req.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := (plugins.EmptyDir{}).Mount(t.Context(), req); err == nil {
		t.Error("a symlink became the volume")
	}
	if got, err := (plugins.EmptyDir{}).Mounted(t.Context(), volume.MountedRequest{Dir: req.Dir, MetaDir: req.MetaDir}); got.Mounted || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := (plugins.EmptyDir{}).Unmount(t.Context(), volume.UnmountRequest{Dir: req.Dir, MetaDir: req.MetaDir}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Fatal(err)
	}
}

func TestSupports(t *testing.T) {
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		want   string
	}{
		"emptyDir":  {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, "kubernetes.io/empty-dir"},
		"memory":    {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}, "kubernetes.io/empty-dir"},
		"hugepages": {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePages-2Mi"}}, "kubernetes.io/empty-dir"},
		"hostPath":  {corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}, "kubernetes.io/host-path"},
		"secret":    {corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}, ""},
	} {
		got := ""
		for _, p := range plugins.Default() {
			if p.Supports(volume.Source{Volume: corev1.Volume{VolumeSource: tc.source}}) {
				got += p.Name()
			}
		}
		if got != tc.want {
			t.Errorf("%s: handled by %q, want %q", name, got, tc.want)
		}
	}
}
