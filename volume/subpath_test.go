package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

func subPathMount(volumeName, subPath string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumeName, MountPath: "/mnt", SubPath: subPath}
}

func containerMounts(t testing.TB, m *volume.Manager, pod *corev1.Pod) ([]volume.ContainerMount, error) {
	t.Helper()
	return m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: "app"})
}

func TestSubPathsAreBindMountsOfWhatIsBelowTheVolume(t *testing.T) {
	beneathtest.NeedMounts(t)
	m, root := newManager(t)
	host := t.TempDir()
	write(t, filepath.Join(host, "conf/app.ini"), "ini")
	pod := newPod("u", host,
		corev1.VolumeMount{Name: "data", MountPath: "/whole"},
		subPathMount("data", "logs/app"),
		subPathMount("host", "conf/app.ini"),
		subPathMount("host", "conf"),
	)
	gid := int64(4711)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &gid}
	mustMount(t, m, pod, "data")
	mustMount(t, m, pod, "host")

	for range 3 { // the second and third call find it all mounted
		mounts, err := containerMounts(t, m, pod)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, mount := range mounts {
			paths = append(paths, strings.TrimPrefix(mount.HostPath, filepath.Join(root, "pods/u")))
		}
		want := []string{
			"/volumes/kubernetes.io~empty-dir/data",
			"/volume-subpaths/data/app/1", "/volume-subpaths/host/app/2", "/volume-subpaths/host/app/3",
		}
		if !slices.Equal(paths, want) {
			t.Fatalf("paths %v", paths)
		}
		points, err := volume.HostMounter{}.MountPoints(filepath.Join(root, "pods/u"))
		if err != nil || len(points) != 3 {
			t.Fatalf("mount points %v, %v", points, err)
		}
		if text, err := os.ReadFile(mounts[2].HostPath); string(text) != "ini" {
			t.Errorf("file subPath: %q, %v", text, err)
		}
		if _, err := os.Stat(filepath.Join(mounts[3].HostPath, "app.ini")); err != nil {
			t.Error(err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dataDir(root, "u"), "logs"), &st); err != nil || st.Mode&0o7777 != 0o2777 || st.Gid != 4711 {
		t.Errorf("made with mode %o, group %d (%v); want the volume's", st.Mode&0o7777, st.Gid, err)
	}

	// A new manager, as after a restart, knows both volumes from the host.
	if got := mounted(t, m, "u"); !slices.Equal(got, []string{"data", "host"}) {
		t.Errorf("mounted %v", got)
	}
	if err := m.Unmount(t.Context(), "u", "host"); err != nil {
		t.Fatal(err)
	}
	if got := mounted(t, m, "u"); !slices.Equal(got, []string{"data"}) {
		t.Errorf("mounted %v", got)
	}
	if err := m.RemovePodDir(context.WithoutCancel(t.Context()), "u"); err != nil { // unmounts what is left
		t.Fatal(err)
	}
	wantGone(t, filepath.Join(root, "pods/u"))
	if _, err := os.Stat(filepath.Join(host, "conf/app.ini")); err != nil {
		t.Errorf("the host's file went: %v", err)
	}
}

func TestSubPathThatChangedIsMountedAnew(t *testing.T) {
	beneathtest.NeedMounts(t)
	m, root := newManager(t)
	dir := mustMount(t, m, newPod("u", ""), "data")
	write(t, filepath.Join(dir, "one/f"), "1")
	write(t, filepath.Join(dir, "two"), "2")
	for _, step := range []struct{ subPath, file, want string }{{"one", "f", "1"}, {"two", "", "2"}, {"one", "f", "1"}} {
		mounts, err := containerMounts(t, m, newPod("u", "", subPathMount("data", step.subPath)))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(mounts[0].HostPath, step.file)); string(text) != step.want {
			t.Errorf("%s: %q, %v", step.subPath, text, err)
		}
	}
	// The file behind the mount is replaced, as an editor does it.
	if err := os.Rename(filepath.Join(dir, "one"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "one/f"), "new")
	mounts, err := containerMounts(t, m, newPod("u", "", subPathMount("data", "one")))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(mounts[0].HostPath, "f")); string(text) != "new" {
		t.Errorf("still shows the old directory: %q", text)
	}
	if err := m.RemovePodDir(context.WithoutCancel(t.Context()), "u"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, filepath.Join(root, "pods/u"))
}

func TestSubPathsThatAreRefused(t *testing.T) {
	m, _ := newManager(t)
	host := t.TempDir()
	outside := t.TempDir()
	for link, target := range map[string]string{"out": outside, "up": "../" + filepath.Base(outside), "gone": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(host, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(host, "file"), "")
	for subPath, want := range map[string]string{
		"/etc":      "must not be an absolute path",
		"a/../../b": "must not contain '..'",
		"out":       "leads out",
		"out/new":   "leads out",
		"up/new":    "leads out",
		"gone/x":    "no such file",
		"file/x":    "not a directory",
	} {
		_, err := containerMounts(t, m, newPod("u", host, subPathMount("host", subPath)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", subPath, err, want)
		}
		if reasoned.Reason(err, "") != "CreateContainerConfigError" {
			t.Errorf("%s: reason %q", subPath, reasoned.Reason(err, ""))
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Errorf("something was made outside: %v", entries)
	}
}

// TestSubPathRace has a container that swaps a directory of its volume for a
// symlink to the host while the subPath is prepared again and again.
func TestSubPathRace(t *testing.T) {
	beneathtest.NeedMounts(t)
	m, _ := newManager(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "sub/host-secret"), "")
	pod := newPod("u", "", subPathMount("data", "dir/sub"))
	dir := mustMount(t, m, pod, "data")
	write(t, filepath.Join(dir, "dir/sub/own"), "")
	if err := os.Symlink(outside, filepath.Join(dir, "evil")); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "dir"), unix.AT_FDCWD, filepath.Join(dir, "evil"), unix.RENAME_EXCHANGE)
			}
		}
	})
	good, tries := 0, 0
	for ; good < 200 && tries < 30_000; tries++ {
		mounts, err := containerMounts(t, m, pod)
		if err != nil {
			continue
		}
		good++
		if _, err := os.Stat(filepath.Join(mounts[0].HostPath, "host-secret")); err == nil {
			t.Error("the host's directory is in the container")
			break
		}
		if _, err := os.Stat(filepath.Join(mounts[0].HostPath, "own")); err != nil {
			t.Errorf("not the volume's directory: %v", err)
			break
		}
		if good%2 == 0 { // mount anew now and then
			if err := (volume.HostMounter{}).Unmount(mounts[0].HostPath); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	attacker.Wait()
	t.Logf("%d of %d prepared", good, tries)
	if good == 0 {
		t.Error("never prepared: the test shows nothing")
	}
	if err := m.RemovePodDir(context.WithoutCancel(t.Context()), "u"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "sub/host-secret")); err != nil {
		t.Errorf("removed through the symlink: %v", err)
	}
}

func TestSubPathExpr(t *testing.T) {
	beneathtest.NeedMounts(t)
	m, root := newManager(t)
	pod := newPod("u", "", corev1.VolumeMount{Name: "data", MountPath: "/l", SubPathExpr: "$(NAME)/x"})
	dir := mustMount(t, m, pod, "data")
	t.Cleanup(func() { _ = m.RemovePodDir(context.WithoutCancel(t.Context()), "u") })
	ask := func(expand func(string) (string, error)) ([]volume.ContainerMount, error) {
		return m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: "app", Expand: expand})
	}
	replace := func(with string) func(string) (string, error) {
		return func(s string) (string, error) { return strings.ReplaceAll(s, "$(NAME)", with), nil }
	}
	mounts, err := ask(replace("web-0"))
	if err != nil || mounts[0].HostPath != filepath.Join(root, "pods/u/volume-subpaths/data/app/0") {
		t.Fatalf("%v, %v", mounts, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "web-0/x")); err != nil {
		t.Error(err)
	}
	broken := errors.New("NAME is not set")
	for name, tc := range map[string]struct {
		expand func(string) (string, error)
		want   string
	}{
		"no expander":     {nil, "nothing to expand it with"},
		"expansion fails": {func(string) (string, error) { return "", broken }, broken.Error()},
		"steps out":       {replace("../.."), "must not contain '..'"},
		"absolute":        {replace("/etc"), "absolute"},
	} {
		if _, err := ask(tc.expand); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		}
	}
}

// brokenMounter fails its binds.
type brokenMounter struct {
	volume.HostMounter
	err error
}

func (b brokenMounter) Bind(*os.File, string) error { return b.err }

func TestAFailedBindIsFinishedByTheNextCall(t *testing.T) {
	beneathtest.NeedMounts(t)
	failure := errors.New("no mount today")
	broken, root := newManager(t, func(c *volume.Config) { c.Mounter = brokenMounter{err: failure} })
	pod := newPod("u", "", subPathMount("data", "x"))
	mustMount(t, broken, pod, "data")
	if _, err := containerMounts(t, broken, pod); !errors.Is(err, failure) {
		t.Fatalf("error %v", err)
	}
	m, _ := newManager(t, func(c *volume.Config) { c.RootDir = root })
	if _, err := containerMounts(t, m, pod); err != nil {
		t.Fatal(err)
	}
	if err := m.RemovePodDir(context.WithoutCancel(t.Context()), "u"); err != nil {
		t.Fatal(err)
	}
}
