package resources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reserved is what a node keeps from its pods.
type Reserved struct {
	// System and Kube are systemReserved and kubeReserved, see ParseReserved.
	System corev1.ResourceList
	Kube   corev1.ResourceList
	// Eviction are the hard thresholds that count as reserved, see ParseHardEviction.
	Eviction []Threshold
}

// Threshold is the least amount of a resource that must stay free: Quantity,
// or, where that is nil, a fraction of the capacity.
type Threshold struct {
	Resource corev1.ResourceName
	Quantity *resource.Quantity
	Fraction float32
}

// Total is all that is reserved of each resource of the capacity.
func (r Reserved) Total(capacity corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name := range capacity {
		sum := r.System[name].DeepCopy()
		sum.Add(r.Kube[name])
		for _, t := range r.Eviction {
			if t.Resource == name {
				sum.Add(t.of(capacity[name]))
			}
		}
		if !sum.IsZero() {
			out[name] = sum
		}
	}
	return out
}

// of takes the fraction in single precision, as the stock kubelet does, so that
// both tell the same number of bytes.
func (t Threshold) of(capacity resource.Quantity) resource.Quantity {
	if t.Quantity != nil {
		return t.Quantity.DeepCopy()
	}
	return *resource.NewQuantity(int64(float64(capacity.Value())*float64(t.Fraction)), resource.BinarySI)
}

// reservable says which resources systemReserved and kubeReserved may name.
func reservable(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "pid":
		return true
	}
	return false
}

// ParseReserved reads systemReserved or kubeReserved: cpu, memory,
// ephemeral-storage and pid. CPU is kept in whole thousandths.
func ParseReserved(texts map[string]string) (corev1.ResourceList, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	out := corev1.ResourceList{}
	for name, text := range texts {
		if !reservable(name) {
			return nil, fmt.Errorf("cannot reserve %q resource", name)
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("failed to parse quantity %q for %q resource: %w", text, name, err)
		}
		if q.Sign() < 0 {
			return nil, fmt.Errorf("resource quantity for %q cannot be negative: %v", name, text)
		}
		if name == string(corev1.ResourceCPU) {
			q.SetMilli((q.ScaledValue(resource.Micro) + 500) / 1000)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}

// signals are the eviction signals, each with the resource that its threshold
// keeps from pods; empty where it keeps none.
func signals() map[string]corev1.ResourceName {
	return map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage,
		"nodefs.inodesFree": "", "imagefs.available": "", "imagefs.inodesFree": "",
		"containerfs.available": "", "containerfs.inodesFree": "", "allocatableMemory.available": "", "pid.available": "",
	}
}

// ParseHardEviction reads evictionHard, such as "memory.available": "100Mi" or
// "nodefs.available": "10%", and returns the thresholds that are kept from pods.
func ParseHardEviction(texts map[string]string) ([]Threshold, error) {
	var out []Threshold
	known := signals()
	for signal, text := range texts {
		name, ok := known[signal]
		if !ok {
			return nil, fmt.Errorf("unsupported eviction signal %v", signal)
		}
		t, set, err := parseThreshold(signal, text)
		if err != nil {
			return nil, err
		}
		if set && name != "" {
			t.Resource = name
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Threshold) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
	return out, nil
}

// parseThreshold reads one threshold; 0% and 100% set none.
func parseThreshold(signal, text string) (t Threshold, set bool, err error) {
	percent, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return t, false, fmt.Errorf("eviction threshold %v: %q: %w", signal, text, err)
		}
		if q.Sign() <= 0 {
			return t, false, fmt.Errorf("eviction threshold %v must be positive: %s", signal, text)
		}
		return Threshold{Quantity: &q}, true, nil
	}
	value, err := strconv.ParseFloat(percent, 32)
	fraction := float32(value) / 100
	switch {
	case err != nil:
		return t, false, fmt.Errorf("eviction threshold %v: %q: %w", signal, text, err)
	case fraction < 0:
		return t, false, fmt.Errorf("eviction percentage threshold %v must be >= 0%%: %s", signal, text)
	case fraction > 1:
		return t, false, fmt.Errorf("eviction percentage threshold %v must be <= 100%%: %s", signal, text)
	case fraction == 0 || fraction == 1:
		return t, false, nil
	}
	return Threshold{Fraction: fraction}, true, nil
}

// ReserveCPUs makes n, the number of CPUs in reservedSystemCPUs, the whole
// reservation of CPU; 0 changes nothing.
func (r Reserved) ReserveCPUs(n int) Reserved {
	if n <= 0 {
		return r
	}
	r.System, r.Kube = r.System.DeepCopy(), r.Kube.DeepCopy()
	delete(r.Kube, corev1.ResourceCPU)
	if r.System == nil {
		r.System = corev1.ResourceList{}
	}
	r.System[corev1.ResourceCPU] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	return r
}

// mostCPUs is more than any kernel has.
const mostCPUs = 1 << 16

// CPUs counts the CPUs of a list in the kernel's form, such as "0-3,8".
func CPUs(list string) (int, error) {
	seen := map[int]bool{}
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(strings.TrimSpace(first))
		to, err2 := strconv.Atoi(strings.TrimSpace(last))
		if err != nil || err2 != nil || from < 0 || to < from || to > mostCPUs {
			return 0, fmt.Errorf("list of CPUs %q: %q is neither a number nor a range such as 0-3", list, part)
		}
		for cpu := from; cpu <= to; cpu++ {
			seen[cpu] = true
		}
	}
	return len(seen), nil
}
