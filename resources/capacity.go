package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Machine is what a node is made of. Package resources/machine reads it from
// the host; a vendor may fill it in from elsewhere.
type Machine struct {
	// MachineID, SystemUUID and BootID identify the installation, the hardware
	// and the boot; empty where the host does not tell.
	MachineID  string
	SystemUUID string
	BootID     string
	// KernelVersion is such as "6.1.0-18-amd64", OSImage such as "Debian GNU/Linux 12 (bookworm)".
	KernelVersion string
	OSImage       string
	// CPUs is the number of logical CPUs that are online.
	CPUs int
	// Memory, Swap and Storage are in bytes. Storage is the size of the
	// filesystem that holds the agent's root directory; 0: not known.
	Memory  int64
	Swap    int64
	Storage int64
	// Hugepages are the preallocated huge pages, one entry per size.
	Hugepages []Hugepages
	// UserNamespace says that the agent does not run in the host's user namespace.
	UserNamespace bool
}

// Hugepages are the preallocated pages of one size.
type Hugepages struct {
	Size  int64 // bytes
	Pages int64
}

// PodLimit bounds how many pods a node takes.
type PodLimit struct {
	// Max is the most pods on the node.
	Max int
	// PerCore bounds them by the number of CPUs too; 0: it does not.
	PerCore int
}

// Capacity is what the node object tells the machine has.
func Capacity(m Machine, pods PodLimit) corev1.ResourceList {
	out := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(m.CPUs)*1000, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(m.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(int64(pods.of(m.CPUs)), resource.DecimalSI),
	}
	if m.Storage > 0 {
		out[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(m.Storage, resource.DecimalSI)
	}
	for _, h := range m.Hugepages {
		out[hugepageResource(h.Size)] = *resource.NewQuantity(h.Size*h.Pages, resource.BinarySI)
	}
	return out
}

func (l PodLimit) of(cpus int) int {
	if l.PerCore > 0 {
		return min(l.Max, l.PerCore*cpus)
	}
	return l.Max
}

func hugepageResource(size int64) corev1.ResourceName {
	return corev1.ResourceName(corev1.ResourceHugePagesPrefix + resource.NewQuantity(size, resource.BinarySI).String())
}

// Allocatable is what pods may have of a capacity: less what is reserved, never
// negative, and the memory less what huge pages took of it.
func Allocatable(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, have := range capacity {
		out[name] = less(have, reserved[name])
	}
	for name, have := range capacity {
		if _, ok := out[corev1.ResourceMemory]; ok && IsHugepages(name) {
			out[corev1.ResourceMemory] = less(out[corev1.ResourceMemory], have)
		}
	}
	return out
}

// IsHugepages says whether a resource is huge pages of some size.
func IsHugepages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func less(have, taken resource.Quantity) resource.Quantity {
	left := have.DeepCopy()
	left.Sub(taken)
	if left.Sign() < 0 {
		left.Set(0)
	}
	return left
}
