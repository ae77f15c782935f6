package main

import (
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/nodefx"
)

// managed takes the CPU requests off a distribution's own pods and notes them
// in annotations, so that they run on the reserved CPUs without taking any from
// what users may request. It works on pods of every source, static ones first.
type managed struct{}

func managedPods() nodefx.Option { return nodefx.AddMutator("managed-pods", managed{}) }

// Mutate implements node.Mutator.
func (managed) Mutate(pod *corev1.Pod) (*corev1.Pod, error) {
	if pod.Annotations["vendor.example/managed"] == "" {
		return pod, nil
	}
	pod = pod.DeepCopy()
	for _, c := range pod.Spec.Containers {
		pod.Annotations["vendor.example/cpu."+c.Name] = c.Resources.Requests.Cpu().String()
		delete(c.Resources.Requests, corev1.ResourceCPU)
	}
	return pod, nil
}
