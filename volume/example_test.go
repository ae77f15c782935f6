package volume_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// A pod's volume from its mount to the end of the pod's directory.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "volume-example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	m, err := volume.New(volume.Config{RootDir: root}, plugins.Default(), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := &corev1.Pod{}
	pod.UID = "4b1d"
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/app", ReadOnly: true}}}}

	path, err := m.Mount(ctx, pod, "data")
	below, _ := filepath.Rel(root, path)
	fmt.Println(below, err)

	mounts, err := m.ContainerMounts(ctx, volume.ContainerMountsRequest{Pod: pod, Container: "app"})
	fmt.Println(mounts[0].ContainerPath, mounts[0].ReadOnly, err)

	names, err := m.Mounted(ctx, "4b1d")
	fmt.Println(names, err)
	fmt.Println(m.Unmount(ctx, "4b1d", "data"), m.RemovePodDir(ctx, "4b1d"))
	// Output:
	// pods/4b1d/volumes/kubernetes.io~empty-dir/data <nil>
	// /var/lib/app true <nil>
	// [data] <nil>
	// <nil> <nil>
}
