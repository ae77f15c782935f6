package plugins

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/internal/reasoned"
)

// pageSize is the size in bytes of the huge pages of a medium: "HugePages-2Mi"
// says it, "HugePages" means what the pod's containers ask for. The containers
// must ask for huge pages of that size. The texts are the stock kubelet's.
func pageSize(medium corev1.StorageMedium, pod *corev1.Pod) (int64, error) {
	asked, err := pageSizes(pod)
	if err != nil {
		return 0, refuse(err)
	}
	if medium == corev1.StorageMediumHugePages {
		if len(asked) > 1 {
			return 0, refuse(fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", medium))
		}
		if len(asked) == 1 {
			return asked[0], nil
		}
		return 0, refuse(fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", medium))
	}
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix)))
	if err != nil || size.Sign() <= 0 {
		return 0, refuse(fmt.Errorf("unknown storage medium %q", medium))
	}
	if !slices.Contains(asked, size.Value()) {
		return 0, refuse(fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", medium))
	}
	return size.Value(), nil
}

func refuse(err error) error { return reasoned.New("FailedMount", err).Final() }

// pageSizes are the sizes of huge pages that a pod asks for.
func pageSizes(pod *corev1.Pod) (sizes []int64, err error) {
	var lists []corev1.ResourceList
	if pod.Spec.Resources != nil {
		lists = append(lists, pod.Spec.Resources.Requests, pod.Spec.Resources.Limits)
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		lists = append(lists, c.Resources.Requests, c.Resources.Limits) // they must be equal
	}
	for _, list := range lists {
		for name := range list {
			text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
			if !ok {
				continue
			}
			size, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, fmt.Errorf("huge pages %q: %w", name, err)
			}
			sizes = append(sizes, size.Value())
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}
