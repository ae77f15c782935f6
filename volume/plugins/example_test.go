package plugins_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// A hostPath that is not what its type says fails the mount.
func ExampleHostPath() {
	kind := corev1.HostPathDirectory
	_, err := plugins.HostPath{}.Mount(context.Background(), volume.MountRequest{Source: volume.Source{Volume: corev1.Volume{
		Name:         "pwd",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/passwd", Type: &kind}},
	}}})
	fmt.Println(err)
	// Output: hostPath type check failed: /etc/passwd is not a directory
}

// Default plugins, in the order in which they are asked.
func ExampleDefault() {
	for _, p := range plugins.Default() {
		fmt.Println(p.Name())
	}
	// Output:
	// kubernetes.io/empty-dir
	// kubernetes.io/host-path
	// kubernetes.io/local-volume
	// kubernetes.io/nfs
	// nodekit.dev/removed
}
