package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/test/integration/testbed"
)

func emptyVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func hostVolume(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind},
	}}
}

// once is a pod that runs to its end, with volumes mounted in all containers.
func once(name string, volumes []corev1.Volume, mounts []corev1.VolumeMount, containers ...corev1.Container) *corev1.Pod {
	pod := newPod(name, containers...)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = volumes
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].VolumeMounts = mounts
	}
	return pod
}

// emptyDir: shared by the containers, kept over a restart, gone with the pod.
func emptyDir(t *testing.T, e *env) {
	writer := shell("writer", "echo shared > /data/file; "+untilTerm)
	reader := shell("reader", "until [ -s /data/file ]; do sleep 0.1; done; ! touch /data/other && "+untilTerm)
	pod := newPod("empty-dir", writer, reader)
	pod.Spec.Volumes = []corev1.Volume{emptyVolume("data")}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	pod.Spec.Containers[1].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true}}
	e.apply(t, pod)
	got := e.until(t, "empty-dir", ready)
	file := filepath.Join(e.agent.Root, "pods", string(got.UID), "volumes", "kubernetes.io~empty-dir", "data", "file")
	eventually(t, patience, func() error { _, err := os.Stat(file); return err })
	e.crash(t, got, "writer")
	got = e.until(t, "empty-dir", all(ready, restarts("writer", 1)))
	if text := e.execIn(t, got, "reader", "cat", "/data/file"); text != "shared\n" {
		t.Errorf("after a restart the file holds %q", text)
	}
	e.remove(t, "empty-dir")
	e.gone(t, got)
}

// crash kills a container behind the agent's back.
func (e *env) crash(t *testing.T, pod corev1.Pod, container string) {
	t.Helper()
	c, _ := statusOf(pod, container)
	if err := e.bed.CrashContainer(t.Context(), bareID(c)); err != nil {
		t.Fatal(err)
	}
}

func hostPath(t *testing.T, e *env) {
	dir := podFolder(t)
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.apply(t, once("host-path",
		[]corev1.Volume{
			hostVolume("dir", dir, corev1.HostPathDirectory),
			hostVolume("file", filepath.Join(dir, "there"), corev1.HostPathFile),
			hostVolume("made", filepath.Join(dir, "made", "here"), corev1.HostPathDirectoryOrCreate),
			hostVolume("new-file", filepath.Join(dir, "new"), corev1.HostPathFileOrCreate),
		},
		[]corev1.VolumeMount{
			{Name: "dir", MountPath: "/dir", ReadOnly: true}, {Name: "file", MountPath: "/file"},
			{Name: "made", MountPath: "/made"}, {Name: "new-file", MountPath: "/new"},
		},
		shell("main", "set -e; grep -q host /file; grep -q host /dir/there; ! touch /dir/x; cp /file /made/copy; cp /file /new"),
	))
	got := e.until(t, "host-path", phase(corev1.PodSucceeded))
	e.remove(t, "host-path")
	e.gone(t, got)
	for _, file := range []string{"there", "made/here/copy", "new"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); string(text) != "from the host" {
			t.Errorf("after the pod %s holds %q, %v", file, text, err)
		}
	}
}

// hostPathMissing: a pod waits, with a reason, until its path is what it says.
func hostPathMissing(t *testing.T, e *env) {
	dir := filepath.Join(podFolder(t), "later")
	e.apply(t, once("host-path-missing",
		[]corev1.Volume{hostVolume("dir", dir, corev1.HostPathDirectory)},
		[]corev1.VolumeMount{{Name: "dir", MountPath: "/dir"}},
		shell("main", "true"),
	))
	e.until(t, "host-path-missing", waiting("main", "ContainerCreating"))
	eventually(t, patience, func() error {
		if !strings.Contains(e.agent.Log(100_000), dir) {
			return os.ErrNotExist
		}
		return nil
	})
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e.untilWithin(t, 2*patience, "host-path-missing", phase(corev1.PodSucceeded))
}

func subPath(t *testing.T, e *env) {
	dir := podFolder(t)
	c := shell("main", "set -e; echo one > /one/file; echo two > /two/file")
	c.Env = []corev1.EnvVar{{Name: "NAME", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
	}}}
	e.apply(t, once("sub-path", []corev1.Volume{hostVolume("dir", dir, corev1.HostPathDirectory)},
		[]corev1.VolumeMount{
			{Name: "dir", MountPath: "/one", SubPath: "a/b"},
			{Name: "dir", MountPath: "/two", SubPathExpr: "by-$(NAME)"},
		}, c))
	got := e.until(t, "sub-path", phase(corev1.PodSucceeded))
	for file, want := range map[string]string{"a/b/file": "one\n", "by-sub-path-bed/file": "two\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); string(text) != want {
			t.Errorf("%s holds %q, %v", file, text, err)
		}
	}
	e.remove(t, "sub-path")
	e.gone(t, got)
	if _, err := os.Stat(filepath.Join(dir, "a/b/file")); err != nil {
		t.Errorf("the end of the pod took the host's file: %v", err)
	}
}

// subPathEscape: a link in the volume never leads out of it.
func subPathEscape(t *testing.T, e *env) {
	dir, secret := podFolder(t), podFolder(t)
	if err := os.WriteFile(filepath.Join(secret, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	e.apply(t, once("escape", []corev1.Volume{hostVolume("dir", dir, corev1.HostPathDirectory)},
		[]corev1.VolumeMount{{Name: "dir", MountPath: "/in", SubPath: "link"}},
		shell("main", "cat /in/secret && exit 0")))
	e.until(t, "escape", waiting("main", "CreateContainerConfigError"))
}

// imageVolume: the content of an image in a container of another one, read-only.
func imageVolume(t *testing.T, e *env) {
	ref := pushTiny(t, e, "image-volume", 0)
	volume := corev1.Volume{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: ref, PullPolicy: corev1.PullIfNotPresent}}}
	e.apply(t, once("image-volume", []corev1.Volume{volume},
		[]corev1.VolumeMount{{Name: "image", MountPath: "/image"}, {Name: "image", MountPath: "/part", SubPath: "bin"}},
		shell("main", "set -e; test -x /image/bin/busybox; test -x /part/busybox; ! touch /image/x")))
	if e.bed.Version == testbed.V16 {
		e.until(t, "image-volume", waiting("main", "CreateContainerError"))
		return
	}
	got := e.until(t, "image-volume", phase(corev1.PodSucceeded))
	e.remove(t, "image-volume")
	e.gone(t, got)
}

// memoryVolume: the kernel holds the sizeLimit of a volume in memory.
func memoryVolume(t *testing.T, e *env) {
	limit := resource.MustParse("1Mi")
	volume := corev1.Volume{Name: "m", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &limit}}}
	e.apply(t, once("memory-volume", []corev1.Volume{volume}, []corev1.VolumeMount{{Name: "m", MountPath: "/m"}},
		shell("main", "set -e; dd if=/dev/zero of=/m/a bs=1k count=512; ! dd if=/dev/zero of=/m/b bs=1k count=1024")))
	got := e.until(t, "memory-volume", phase(corev1.PodSucceeded))
	e.remove(t, "memory-volume")
	e.gone(t, got)
}
