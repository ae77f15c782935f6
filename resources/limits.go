package resources

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits are kernel values for one cgroup. A zero field is not set.
type Limits struct {
	CPUShares int64 // cgroup v1 shares, 2 to 262144
	CPUQuota  int64 // µs per CPUPeriod
	CPUPeriod int64 // µs
	Memory    int64 // bytes
	// Hugepages holds bytes by page size in the kernel's spelling, such as "2MB".
	Hugepages map[string]uint64
}

// ContainerLimits are the values for the cgroup of one container.
func ContainerLimits(c *corev1.Container, quota CPUQuota) Limits {
	return limitsFrom(requestsOf(c), c.Resources.Limits, quota)
}

// PodLimits are the values for the cgroup of the whole pod, overhead included.
// CPU and memory are limited only where every container has such a limit. A
// best-effort pod gets the least shares there are, whatever its overhead.
func PodLimits(pod *corev1.Pod, quota CPUQuota) Limits {
	out := limitsFrom(PodRequests(pod), bounded(pod, PodLimitTotals(pod)), quota)
	if QOSClass(pod) == corev1.PodQOSBestEffort {
		out.CPUShares = MinShares
	}
	return out
}

// PodLimitsWithoutOverhead are the same without the overhead: what the runtime
// is told beside it (k/k#108441).
func PodLimitsWithoutOverhead(pod *corev1.Pod, quota CPUQuota) Limits {
	limits := bounded(pod, totalOf(pod, limitsOf))
	return limitsFrom(totalOf(pod, requestsOf), limits, quota)
}

// OverheadLimits are the values of the overhead itself, its request and limit
// being the same; false where the pod has none.
func OverheadLimits(pod *corev1.Pod, quota CPUQuota) (Limits, bool) {
	if len(pod.Spec.Overhead) == 0 {
		return Limits{}, false
	}
	return limitsFrom(pod.Spec.Overhead, pod.Spec.Overhead, quota), true
}

func limitsFrom(requests, limits corev1.ResourceList, quota CPUQuota) Limits {
	out := Limits{
		CPUShares: Shares(requests.Cpu().MilliValue()),
		CPUQuota:  quota.Micros(limits.Cpu().MilliValue()),
		Memory:    limits.Memory().Value(),
		Hugepages: hugepages(limits),
	}
	if out.CPUQuota > 0 {
		out.CPUPeriod = quota.Period.Microseconds()
	}
	return out
}

// bounded drops from totals what some container may use without limit: the sum
// of the others' limits would choke it.
func bounded(pod *corev1.Pod, totals corev1.ResourceList) corev1.ResourceList {
	for c := range allContainers(pod) {
		for _, name := range qosResources {
			if limit := c.Resources.Limits[name]; limit.Sign() <= 0 {
				delete(totals, name)
			}
		}
	}
	return totals
}

func hugepages(limits corev1.ResourceList) map[string]uint64 {
	var out map[string]uint64
	for name, q := range limits {
		size, ok := HugepageSize(name)
		if !ok || q.Sign() < 0 {
			continue
		}
		if out == nil {
			out = map[string]uint64{}
		}
		out[size] = uint64(q.Value())
	}
	return out
}

// HugepageSize is the kernel's spelling ("2MB") of the page size in a resource
// name such as "hugepages-2Mi"; false for other resources.
func HugepageSize(name corev1.ResourceName) (string, bool) {
	text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return "", false
	}
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Sign() <= 0 {
		return "", false
	}
	bytes, unit := size.Value(), 0
	const units = "BKMGTP"
	for bytes%1024 == 0 && unit < len(units)-1 {
		bytes /= 1024
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(bytes, 10) + "B", true
	}
	return strconv.FormatInt(bytes, 10) + units[unit:unit+1] + "B", true
}
