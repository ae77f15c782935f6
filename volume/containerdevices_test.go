package volume_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/needtest"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// rack is a plugin for claims on block devices: a link to the device.
type rack struct{ device string }

func (rack) Name() string                  { return "vendor.example/rack" }
func (rack) Supports(s volume.Source) bool { return s.Block() }
func (r rack) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	err := os.MkdirAll(filepath.Dir(req.Dir), 0o750)
	if err == nil {
		if err = os.Symlink(r.device, req.Dir); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	return volume.MountResult{HostPath: req.Dir}, err
}

func (rack) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	_, err := os.Lstat(req.Dir)
	return volume.MountedResult{Mounted: err == nil, HostPath: req.Dir}, nil
}

func (rack) Unmount(_ context.Context, req volume.UnmountRequest) error { return os.Remove(req.Dir) }

// boundDevices is bound with volumes of volumeMode Block, but for claims named file.
type boundDevices struct{ bound }

func (b *boundDevices) Claimed(ctx context.Context, pod *corev1.Pod, v corev1.Volume) (volume.Source, error) {
	s, err := b.bound.Claimed(ctx, pod, v)
	if s.Claim.Name != "file" {
		s.PersistentVolume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		s.ReadOnly = s.Claim.Name == "ro"
	}
	return s, err
}

func newDevice(t *testing.T) string {
	t.Helper()
	device := filepath.Join(t.TempDir(), "disk")
	if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))); err != nil {
		needtest.SkipOrFail(t, "needs root to make a device node: "+err.Error())
	}
	return device
}

func TestContainerDevices(t *testing.T) {
	device, root := newDevice(t), t.TempDir()
	m, err := volume.New(volume.Config{RootDir: root, Claims: &boundDevices{}}, []volume.Plugin{rack{device}, shelf{}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pod := claimingPod("u1", "raw=disk", "locked=ro", "tree=file")
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = c.VolumeMounts[2:]
	c.VolumeDevices = []corev1.VolumeDevice{{Name: "raw", DevicePath: "/dev/a"}, {Name: "locked", DevicePath: "/dev/b"}}
	req := volume.ContainerDevicesRequest{Pod: pod, Container: "app"}
	if _, err := m.ContainerDevices(t.Context(), req); err == nil ||
		!strings.HasPrefix(err.Error(), `cannot find volume "raw" to pass into container "app"`) || reasoned.Reason(err, "") != "CreateContainerConfigError" {
		t.Errorf("before the mount: %v", err)
	}
	if path := mustMount(t, m, pod, "raw"); path != filepath.Join(root, "pods/u1/volumeDevices/vendor.example~rack/pv-disk") {
		t.Errorf("the device is at %s", path)
	}
	mustMount(t, m, pod, "locked")
	mustMount(t, m, pod, "tree")
	got, err := m.ContainerDevices(t.Context(), req)
	want := []volume.ContainerDevice{{HostPath: device, ContainerPath: "/dev/a"}, {HostPath: device, ContainerPath: "/dev/b", ReadOnly: true}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if names := mounted(t, m, "u1"); !slices.Equal(names, []string{"locked", "raw", "tree"}) {
		t.Errorf("mounted are %v", names)
	}
	// Without its record a device is found by its place alone.
	if err := os.Remove(filepath.Join(root, "pods/u1/volume-claims/raw")); err != nil {
		t.Fatal(err)
	}
	if names := mounted(t, m, "u1"); !slices.Equal(names, []string{"locked", "pv-disk", "tree"}) {
		t.Errorf("mounted are %v", names)
	}
	for _, name := range []string{"locked", "pv-disk"} {
		if err := m.Unmount(t.Context(), "u1", name); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(root, "pods/u1/volumeDevices/vendor.example~rack")); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := os.Stat(device); err != nil {
		t.Error(err)
	}
	if err := m.RemovePodDir(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	wantGone(t, filepath.Join(root, "pods/u1"))
}

func TestContainerDevicesRefuses(t *testing.T) {
	root := t.TempDir()
	m, err := volume.New(volume.Config{RootDir: root, Claims: &boundDevices{}}, []volume.Plugin{rack{"/dev/null"}, shelf{}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pod := claimingPod("u1", "raw=disk", "tree=file")
	mustMount(t, m, pod, "raw")
	mustMount(t, m, pod, "tree")
	for device, want := range map[corev1.VolumeDevice]string{
		{Name: "raw", DevicePath: "dev/a"}:   "error DevicePath `dev/a` must be an absolute path",
		{Name: "none", DevicePath: "/dev/a"}: `cannot find volume "none" to pass into container "app"`,
		{Name: "tree", DevicePath: "/dev/a"}: "volume tree has volumeMode Filesystem, but is specified in volumeDevices",
		{Name: "raw", DevicePath: "/dev/a"}:  "/dev/null is not a block device",
	} {
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{device}
		if _, err := m.ContainerDevices(t.Context(), volume.ContainerDevicesRequest{Pod: pod, Container: "app"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", device, err)
		}
	}
	_, err = m.ContainerMounts(t.Context(), volume.ContainerMountsRequest{Pod: pod, Container: "app"})
	if err == nil || !strings.Contains(err.Error(), "volume raw has volumeMode Block, but is specified in volumeMounts") {
		t.Errorf("a device in volumeMounts: %v", err)
	}
}
