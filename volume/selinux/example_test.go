package selinux_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume/selinux"
)

func ExampleFileLabel() {
	label, err := selinux.FileLabel("system_u:object_r:container_file_t:s0", &corev1.SELinuxOptions{Level: "s0:c10,c20"})
	fmt.Println(label, err)
	// Output: system_u:object_r:container_file_t:s0:c10,c20 <nil>
}
