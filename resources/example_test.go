package resources_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/resources"
)

func Example() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("2Gi")},
		},
	}}}}
	pod.UID = "6f1c-01"

	limits := resources.PodLimits(pod, resources.DefaultCPUQuota())
	fmt.Println(resources.QOSClass(pod), limits.CPUShares, limits.CPUQuota, limits.Memory)
	fmt.Println(resources.OOMScoreAdj(pod, &pod.Spec.Containers[0], 4<<30))
	fmt.Println(resources.CgroupNames{Driver: resources.Systemd}.Parent(pod))
	// Output:
	// Burstable 256 50000 2147483648
	// 750
	// kubepods-burstable-pod6f1c_01.slice
}
