package lifecycle_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
)

// A pod that was admitted and prepared gets its cgroup, its volumes and its
// images at the same time. Nothing was done: a plan is only data.
func ExampleDecide() {
	pod := &corev1.Pod{}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	pod.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "example.com/web:1",
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}}
	plan := lifecycle.Decide(lifecycle.Input{
		Now:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Want: lifecycle.Want{UID: "1", Name: "web", Pod: pod, Rules: lifecycle.DefaultRules()},
		Seen: lifecycle.Seen{
			Looked: true, VolumesLooked: true, NetworkReady: true, Prepared: true,
			Admission: lifecycle.Admission{Verdict: lifecycle.VerdictAdmit},
		},
	})
	for _, action := range plan.Do {
		fmt.Println(action.Kind, action.Key)
	}
	fmt.Println(plan.Status.Phase, plan.Status.ContainerStatuses[0].State.Waiting.Reason)
	// Output:
	// EnsureCgroup cgroup
	// Mount volume/data
	// Pull image/web
	// Pending ContainerCreating
}
