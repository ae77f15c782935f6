package resources

import (
	corev1 "k8s.io/api/core/v1"
)

// The stock oom_score_adj values.
const (
	guaranteedOOM = -997
	bestEffortOOM = 1000
	// A burstable container stays above the guaranteed and below best effort.
	burstableOOMMin = 1000 + guaranteedOOM
	burstableOOMMax = bestEffortOOM - 1
)

// systemNodeCritical is the priority class of pods that the node can not do without.
const systemNodeCritical = "system-node-critical"

// OOMScoreAdj is what the kernel adds to the badness of a container's processes:
// the more of the node's memory a burstable container asked for, the later it
// is killed. memoryCapacity is the node's memory in bytes.
//
// A sidecar is never killed sooner than the main container that asked for most,
// since the pod is useless without it.
func OOMScoreAdj(pod *corev1.Pod, c *corev1.Container, memoryCapacity int64) int64 {
	if pod.Spec.PriorityClassName == systemNodeCritical {
		return guaranteedOOM
	}
	switch QOSClass(pod) {
	case corev1.PodQOSGuaranteed:
		return guaranteedOOM
	case corev1.PodQOSBestEffort:
		return bestEffortOOM
	}
	score := burstableOOM(c, memoryCapacity)
	if IsSidecar(c) && isInit(pod, c.Name) {
		for i := range pod.Spec.Containers {
			score = min(score, burstableOOM(&pod.Spec.Containers[i], memoryCapacity))
		}
	}
	return min(max(score, burstableOOMMin), burstableOOMMax)
}

func burstableOOM(c *corev1.Container, memoryCapacity int64) int64 {
	if memoryCapacity <= 0 {
		return burstableOOMMax
	}
	memory := request(c, corev1.ResourceMemory)
	return 1000 - 1000*memory.Value()/memoryCapacity
}

func isInit(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return true
		}
	}
	return false
}
