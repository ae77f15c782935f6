package agent

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/integration/testbed"
)

// hostPathSpecial: sockets and devices come into a container as what they are,
// and nothing else is taken for one.
func hostPathSpecial(t *testing.T, e *env) {
	dir := podFolder(t)
	socket, device := filepath.Join(dir, "sock"), filepath.Join(dir, "disk")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 250))); err != nil { // nobody opens it
		t.Fatal(err)
	}
	e.apply(t, once("host-path-special",
		[]corev1.Volume{
			hostVolume("sock", socket, corev1.HostPathSocket),
			hostVolume("null", "/dev/null", corev1.HostPathCharDev),
			hostVolume("disk", device, corev1.HostPathBlockDev),
		},
		[]corev1.VolumeMount{{Name: "sock", MountPath: "/sock"}, {Name: "null", MountPath: "/null"}, {Name: "disk", MountPath: "/disk"}},
		shell("main", "test -S /sock && test -c /null && test -b /disk"),
	))
	e.until(t, "host-path-special", phase(corev1.PodSucceeded))
	e.apply(t, once("host-path-no-device", []corev1.Volume{hostVolume("disk", socket, corev1.HostPathBlockDev)},
		[]corev1.VolumeMount{{Name: "disk", MountPath: "/disk"}}, shell("main", "true")))
	e.until(t, "host-path-no-device", waiting("main", "ContainerCreating"))
	eventually(t, patience, func() error {
		if !strings.Contains(e.agent.Log(100_000), "host-path-no-device") || !strings.Contains(e.agent.Log(100_000), "block device") {
			return os.ErrNotExist
		}
		return nil
	})
	e.remove(t, "host-path-no-device")
}

// sharedFolder is a folder whose mounts other namespaces may see.
func sharedFolder(t *testing.T) string {
	t.Helper()
	dir := podFolder(t)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tmpfs mounts one with a file in it.
func tmpfs(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("inner"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func unmount(t *testing.T, dir string) {
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Error(err)
	}
}

// mountPropagation: what the host mounts later comes into a container that asks
// for it, and into no other; what a container mounts comes out of it likewise.
func mountPropagation(t *testing.T, e *env) {
	dir := sharedFolder(t)
	inward, both := corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional
	sees := shell("sees", "until [ -e /dir/late/file ]; do sleep 0.1; done; "+untilTerm)
	blind := shell("blind", untilTerm)
	mounts := shell("mounts", "mkdir /dir/out && mount -t tmpfs tmpfs /dir/out && echo out > /dir/out/file; trap 'umount /dir/out; exit 0' TERM; sleep 10000 & wait")
	privileged := true
	mounts.SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
	pod := newPod("propagation", sees, blind, mounts)
	pod.Spec.Volumes = []corev1.Volume{hostVolume("dir", dir, corev1.HostPathDirectory)}
	for i, mode := range []*corev1.MountPropagationMode{&inward, nil, &both} {
		pod.Spec.Containers[i].VolumeMounts = []corev1.VolumeMount{{Name: "dir", MountPath: "/dir", MountPropagation: mode}}
	}
	pod.Spec.Containers[0].ReadinessProbe = quickProbe(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/dir/late/file"}}}, 1)
	e.apply(t, pod)
	e.until(t, "propagation", running("blind"))
	tmpfs(t, filepath.Join(dir, "late"))
	got := e.until(t, "propagation", ready)
	if text := e.execIn(t, got, "blind", "sh", "-c", "ls /dir/late | wc -l"); strings.TrimSpace(text) != "0" {
		t.Errorf("a container without propagation sees %s files of a later mount", text)
	}
	eventually(t, patience, func() error { _, err := os.Stat(filepath.Join(dir, "out", "file")); return err })
	e.remove(t, "propagation")
	e.gone(t, got)
	if _, err := os.Stat(filepath.Join(dir, "late", "file")); err != nil {
		t.Errorf("the end of the pod took the host's mount: %v", err)
	}
}

// recursiveReadOnly: what is mounted below a volume is read-only as well. A
// runtime that can not do it makes the pod wait, or leaves the volume as usual,
// as it is asked to.
func recursiveReadOnly(t *testing.T, e *env) {
	dir := sharedFolder(t)
	tmpfs(t, filepath.Join(dir, "inner"))
	enabled, possible := corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible
	volume := []corev1.Volume{hostVolume("dir", dir, corev1.HostPathDirectory)}
	mount := func(mode *corev1.RecursiveReadOnlyMode) []corev1.VolumeMount {
		return []corev1.VolumeMount{{Name: "dir", MountPath: "/dir", ReadOnly: true, RecursiveReadOnly: mode}}
	}
	e.apply(t, once("ro-plain", volume, mount(nil), shell("main", "! touch /dir/x && touch /dir/inner/x")))
	e.until(t, "ro-plain", phase(corev1.PodSucceeded))
	if e.bed.Version == testbed.V16 { // it knows no such mounts
		e.apply(t, once("ro-possible", volume, mount(&possible), shell("main", "! touch /dir/x && touch /dir/inner/x")))
		e.until(t, "ro-possible", phase(corev1.PodSucceeded))
		return
	}
	e.apply(t, once("ro-enabled", volume, mount(&enabled), shell("main", "! touch /dir/x && ! touch /dir/inner/x && cat /dir/inner/file")))
	e.until(t, "ro-enabled", phase(corev1.PodSucceeded))
	e.apply(t, once("ro-possible", volume, mount(&possible), shell("main", "! touch /dir/inner/x")))
	e.until(t, "ro-possible", phase(corev1.PodSucceeded))
}
