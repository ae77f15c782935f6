package volumetest_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
	"nodekit.dev/volume/volumetest"
)

// A subject is the plugin and the volumes that it is tried with. A test gives it
// to Suite.
func Example() {
	subject := volumetest.Subject{Plugin: plugins.EmptyDir{}, Source: func(int) volume.Source {
		return volume.Source{Volume: corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}}
	fmt.Println(subject.Plugin.Supports(subject.Source(0)))
	// Output: true
}
