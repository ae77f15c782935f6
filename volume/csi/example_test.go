package csi_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
)

func Example() {
	p, err := csi.New(csi.Config{RootDir: "/var/lib/kubelet", NodeName: "n1"}, csi.Parts{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := volume.Source{Volume: corev1.Volume{Name: "secrets", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "vault.example"}}}}
	fmt.Println(p.Name(), p.Supports(s))
	_, err = p.Mount(context.Background(), volume.MountRequest{Pod: &corev1.Pod{}, Source: s})
	fmt.Println(err)
	// Output:
	// kubernetes.io/csi true
	// driver name vault.example not found in the list of registered CSI drivers
}
