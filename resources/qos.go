package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// qosResources are the resources that decide the QoS class.
var qosResources = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// QOSClass is the class that follows from the requests and limits of the pod's
// containers, init containers included. Overhead does not count.
//
//   - BestEffort: no container asks for CPU or memory.
//   - Guaranteed: every container limits both, and the totals of requests and
//     limits are equal.
//   - Burstable: the rest.
func QOSClass(pod *corev1.Pod) corev1.PodQOSClass {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	allLimited := true
	for c := range allContainers(pod) {
		for _, name := range qosResources {
			limit := c.Resources.Limits[name]
			addPositive(limits, name, limit)
			addPositive(requests, name, request(c, name))
			allLimited = allLimited && limit.Sign() > 0
		}
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case allLimited && sameAmounts(requests, limits):
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

func addPositive(sum corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	if q.Sign() <= 0 {
		return
	}
	total := sum[name].DeepCopy()
	total.Add(q)
	sum[name] = total
}

func sameAmounts(a, b corev1.ResourceList) bool {
	for _, name := range qosResources {
		x, y := a[name], b[name]
		if x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}
