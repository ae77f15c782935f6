package stats

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/internal/needtest"
	"nodekit.dev/volume"
)

// request is one for a volume at path.
func request(path string) ReadRequest {
	return ReadRequest{Pod: &corev1.Pod{}, Place: volume.Place{Plugin: "p", Path: path}}
}

func TestFileSystemsAreAsked(t *testing.T) {
	beneathtest.NeedMounts(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,nr_inodes=100"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	fill(t, filepath.Join(dir, "ten"), 10<<20)
	source, how, err := host{}.choose(request(dir))
	if source != "statfs" || err != nil {
		t.Fatalf("%q, %v", source, err)
	}
	got, err := how(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *got.Used != 10<<20 || *got.Capacity != 32<<20 || *got.Available != 22<<20 || *got.Inodes != 100 || *got.InodesUsed != 2 || *got.InodesFree != 98 {
		t.Errorf("%d of %d, %d left; inodes %d of %d, %d left", *got.Used, *got.Capacity, *got.Available, *got.InodesUsed, *got.Inodes, *got.InodesFree)
	}
}

func TestDirectoriesAreWalked(t *testing.T) {
	dir := t.TempDir()
	fill(t, filepath.Join(dir, "ten"), 10<<20)
	h := host{walk: unpaced()}
	if source, how, err := h.choose(request(dir)); source != "du" || how != nil || err != nil {
		t.Fatalf("%q, %v", source, err)
	}
	got, err := h.usageByWalk(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if *got.Used < 10<<20 || *got.Used > 10<<20+64<<10 || *got.InodesUsed != 2 || *got.Capacity <= *got.Used || *got.Inodes <= 2 {
		t.Errorf("used %d of %d, inodes %d of %d", *got.Used, *got.Capacity, *got.InodesUsed, *got.Inodes)
	}
	ofTheHost := request(dir)
	ofTheHost.PersistentVolume = &corev1.PersistentVolume{}
	ofTheHost.PersistentVolume.Spec.HostPath = &corev1.HostPathVolumeSource{}
	if source, how, err := h.choose(ofTheHost); source != "" || how != nil || err != nil {
		t.Errorf("a hostPath PersistentVolume: %q, %v", source, err)
	}
	if _, _, err := h.choose(request(filepath.Join(dir, "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// loop makes a loop device of so many MB.
func loop(t *testing.T, size int64) string {
	t.Helper()
	beneathtest.NeedMounts(t)
	image := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size<<20)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		needtest.SkipOrFail(t, "no loop device: "+string(out))
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() })
	return device
}

func TestBlockDevicesHaveASize(t *testing.T) {
	device := loop(t, 48)
	block := corev1.PersistentVolumeBlock
	req := request(device)
	req.PersistentVolume = &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{VolumeMode: &block}}
	source, how, err := host{}.choose(req)
	if source != "block" || err != nil {
		t.Fatalf("%q, %v", source, err)
	}
	got, err := how(t.Context())
	if err != nil || *got.Capacity != 48<<20 || got.Used != nil || got.Inodes != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, path := range []string{"/dev/null", t.TempDir()} {
		if _, err := blockUsage(path); err == nil || !strings.Contains(err.Error(), "no block device") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// TestProjectQuotas needs a kernel that knows the quotas of ext4.
func TestProjectQuotas(t *testing.T) {
	device := loop(t, 64)
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", device).CombinedOutput(); err != nil {
		needtest.SkipOrFail(t, "mkfs.ext4: "+string(out))
	}
	root := t.TempDir()
	if err := unix.Mount(device, root, "ext4", 0, "prjquota"); err != nil {
		t.Skipf("this kernel has no project quotas on ext4 (CONFIG_QFMT_V2): %v", err) // no root could help
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	var logs bytes.Buffer
	var projects Projects
	plugin := projects.Around(dirPlugin{}, slog.New(slog.NewTextHandler(&logs, nil)))
	own := false
	pod := &corev1.Pod{Spec: corev1.PodSpec{HostUsers: &own}}
	var dirs []string
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(root, name)
		for range 2 { // the second time it has its project
			if _, err := plugin.Mount(t.Context(), volume.MountRequest{Pod: pod, Dir: dir}); err != nil || logs.Len() > 0 {
				t.Fatalf("%v %s", err, &logs)
			}
		}
		dirs = append(dirs, dir)
	}
	fill(t, filepath.Join(dirs[0], "sub/ten"), 10<<20)
	h := host{walk: unpaced(), quotas: true}
	for i, want := range []int64{10 << 20, 0} {
		req := request(dirs[i])
		req.Pod = pod
		source, how, err := h.choose(req)
		if source != "fsquota" || err != nil {
			t.Fatalf("%q, %v", source, err)
		}
		got, err := how(t.Context())
		walked, err2 := h.usageByWalk(t.Context(), dirs[i])
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if *got.Used < want || *got.Used != *walked.Used || *got.InodesUsed != *walked.InodesUsed {
			t.Errorf("quota: %d bytes in %d, walk: %d in %d", *got.Used, *got.InodesUsed, *walked.Used, *walked.InodesUsed)
		}
	}
	full := filepath.Join(root, "full")
	fill(t, filepath.Join(full, "f"), 1)
	if ok, err := projects.Assign(full); ok || err != nil {
		t.Errorf("a directory that is not empty: %v, %v", ok, err)
	}
	if source, _, _ := h.choose(request(dirs[0])); source != "du" {
		t.Errorf("a pod without a user namespace is measured by %q", source)
	}
}

// TestProjectsWhereThereAreNone: a file system without quotas is no error.
func TestProjectsWhereThereAreNone(t *testing.T) {
	beneathtest.NeedMounts(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if ok, err := new(Projects).Assign(dir); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// dirPlugin makes directories.
type dirPlugin struct{ volume.Plugin }

func (dirPlugin) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return volume.MountResult{HostPath: req.Dir}, os.MkdirAll(req.Dir, 0o777)
}
