package resources

import (
	"iter"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodRequests is what the pod asks for in total: the larger of what runs in the
// end (main containers and sidecars) and what its init containers need on the
// way there, plus the overhead of its runtime class.
func PodRequests(pod *corev1.Pod) corev1.ResourceList {
	total := totalOf(pod, requestsOf)
	add(total, pod.Spec.Overhead)
	return total
}

// PodLimitTotals are the limits of the pod in total. Overhead is added only to
// resources that are limited at all, so that a pod without limits stays without.
func PodLimitTotals(pod *corev1.Pod) corev1.ResourceList {
	total := totalOf(pod, limitsOf)
	for name, extra := range pod.Spec.Overhead {
		if have, ok := total[name]; ok && have.Sign() > 0 {
			have.Add(extra)
			total[name] = have
		}
	}
	return total
}

// totalOf adds up what of says about each container. A sidecar (a
// restartable init container) counts from its start to the end of the pod; an
// ordinary init container counts only while it runs, beside the sidecars that
// were started before it.
func totalOf(pod *corev1.Pod, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		add(total, of(&pod.Spec.Containers[i]))
	}
	sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if IsSidecar(c) {
			add(sidecars, of(c))
			raise(peak, sidecars)
			continue
		}
		during := maps.Clone(sidecars)
		add(during, of(c))
		raise(peak, during)
	}
	add(total, sidecars)
	raise(total, peak)
	return total
}

// IsSidecar says whether an init container is restartable, and so stays beside
// the main containers until the pod ends.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// requestsOf are the container's requests, taken from the limits where absent.
func requestsOf(c *corev1.Container) corev1.ResourceList {
	all := corev1.ResourceList{}
	maps.Copy(all, c.Resources.Limits)
	maps.Copy(all, c.Resources.Requests)
	return all
}

func limitsOf(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits }

func request(c *corev1.Container, name corev1.ResourceName) resource.Quantity {
	if q, ok := c.Resources.Requests[name]; ok {
		return q
	}
	return c.Resources.Limits[name]
}

// allContainers yields the main containers, then the init containers.
func allContainers(pod *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

func add(sum, more corev1.ResourceList) {
	for name, q := range more {
		total := sum[name].DeepCopy()
		total.Add(q)
		sum[name] = total
	}
}

func raise(least, to corev1.ResourceList) {
	for name, q := range to {
		if have, ok := least[name]; !ok || have.Cmp(q) < 0 {
			least[name] = q.DeepCopy()
		}
	}
}
