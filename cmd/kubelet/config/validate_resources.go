package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Rules about cgroups, what is kept from pods, and shutdown.

func (c *checker) cgroups() {
	kc := c.kc
	c.must(kc.SystemCgroups == "" || kc.CgroupRoot != "", "systemCgroups", "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified")
	c.oneOf("cgroupDriver", kc.CgroupDriver, "cgroupfs", "systemd")
	between(c, "oomScoreAdj", *kc.OOMScoreAdj, -1000, 1000)
	notNegative(c, "maxOpenFiles", kc.MaxOpenFiles)
	const field = "cpuCFSQuotaPeriod"
	period := kc.CPUCFSQuotaPeriod.Duration
	if !c.features.Enabled("CustomCPUCFSQuotaPeriod") {
		c.must(period == 100*time.Millisecond, field, "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) %v requires feature gate CustomCPUCFSQuotaPeriod", period)
		return
	}
	c.must(period >= time.Millisecond && period <= time.Second, field, "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) %v must be between 1ms and 1sec, inclusive", period)
}

func (c *checker) memory() {
	kc := c.kc
	c.must(slices.Contains([]string{"", "LimitedSwap", "NoSwap"}, kc.MemorySwap.SwapBehavior), "memorySwap.swapBehavior",
		"memorySwap.swapBehavior %q must be one of: \"\", \"LimitedSwap\" or \"NoSwap\"", kc.MemorySwap.SwapBehavior)
	qos := c.features.Enabled("MemoryQoS")
	if f := kc.MemoryThrottlingFactor; f != nil {
		c.must(qos || *f == 0.9, "memoryThrottlingFactor", "memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled")
		c.must(*f > 0 && *f <= 1, "memoryThrottlingFactor", "memoryThrottlingFactor %v must be greater than 0 and less than or equal to 1.0", *f)
	}
	policy := string(kc.MemoryReservationPolicy)
	c.must(qos || policy != "TieredReservation", "memoryReservationPolicy", "memoryReservationPolicy %q requires MemoryQoS feature gate to be enabled", policy)
	c.option("memoryReservationPolicy", policy, "None", "TieredReservation")
}

func (c *checker) managers() {
	kc := c.kc
	c.oneOf("topologyManagerPolicy", kc.TopologyManagerPolicy, "none", "best-effort", "restricted", "single-numa-node")
	c.must(slices.Contains([]string{"container", "pod"}, kc.TopologyManagerScope), "topologyManagerScope",
		"topologyManagerScope (--topology-manager-scope) %q must be one of: %q, or %q", kc.TopologyManagerScope, "container", "pod")
	c.oneOf("cpuManagerPolicy", kc.CPUManagerPolicy, "none", "static")
	c.oneOf("memoryManagerPolicy", kc.MemoryManagerPolicy, "None", "Static")
}

// The words of enforceNodeAllocatable.
const (
	enforceNone       = "none"
	enforcePods       = "pods"
	enforceSystem     = "system-reserved"
	enforceSystemCPU  = "system-reserved-compressible"
	enforceKubelet    = "kube-reserved"
	enforceKubeletCPU = "kube-reserved-compressible"
)

func (c *checker) allocatable() {
	const field, named = "enforceNodeAllocatable", "enforceNodeAllocatable (--enforce-node-allocatable)"
	list := c.kc.EnforceNodeAllocatable
	for _, pair := range [][2]string{{enforceSystem, enforceSystemCPU}, {enforceKubelet, enforceKubeletCPU}} {
		both := slices.Contains(list, pair[0]) && slices.Contains(list, pair[1])
		c.must(!both, field, "both %q and %q cannot be specified together in "+named, pair[0], pair[1])
	}
	seen := map[string]bool{}
	for _, key := range list {
		if c.must(!seen[key], field, "duplicated enforcements %q in "+named, key); seen[key] {
			continue
		}
		seen[key] = true
		switch key {
		case enforcePods:
		case enforceSystem, enforceSystemCPU:
			c.must(c.kc.SystemReservedCgroup != "", "systemReservedCgroup",
				"systemReservedCgroup (--system-reserved-cgroup) must be specified when %q or %q included in "+named, enforceSystem, enforceSystemCPU)
		case enforceKubelet, enforceKubeletCPU:
			c.must(c.kc.KubeReservedCgroup != "", "kubeReservedCgroup",
				"kubeReservedCgroup (--kube-reserved-cgroup) must be specified when %q or %q included in "+named, enforceKubelet, enforceKubeletCPU)
		case enforceNone:
			c.must(len(list) == 1, field, named+" may not contain additional enforcements when %q is specified", enforceNone)
			continue
		default:
			c.must(false, field, "option %q specified for "+named+". Valid options are %s", key,
				quotedList([]string{enforcePods, enforceSystem, enforceSystemCPU, enforceKubelet, enforceKubeletCPU, enforceNone}))
			continue
		}
		c.must(*c.kc.CgroupsPerQOS, "cgroupsPerQOS", "cgroupsPerQOS (--cgroups-per-qos) must be set to true when %q contained in "+named, key)
	}
}

func (c *checker) reserved() {
	kc := c.kc
	if cpus := kc.ReservedSystemCPUs; cpus != "" {
		const named = "reservedSystemCPUs (--reserved-cpus)"
		c.must(kc.SystemReservedCgroup == "" && kc.KubeReservedCgroup == "", "reservedSystemCPUs",
			"can't use "+named+" with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)")
		if err := checkCPUList(cpus); err != nil {
			c.must(false, "reservedSystemCPUs", "unable to parse "+named+" %v, error: %v", cpus, err)
		}
	}
	seen := map[string]bool{}
	for _, memory := range kc.ReservedMemory {
		for _, name := range sortedKeys(memory.Limits) {
			quantity, key := memory.Limits[name], strconv.Itoa(int(memory.NumaNode))+" "+string(name)
			huge := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
			c.must(huge || name == corev1.ResourceMemory, "reservedMemory", "the limit type %q for NUMA node %d is not supported, only %v is accepted",
				name, memory.NumaNode, []string{"memory", "hugepages-<HugePageSize>"})
			c.must(!quantity.IsZero(), "reservedMemory", "reserved memory may not be zero for NUMA node %d and resource %q", memory.NumaNode, name)
			c.must(!seen[key], "reservedMemory", "the reserved memory has a duplicate value for NUMA node %d and resource %q", memory.NumaNode, name)
			seen[key] = true
		}
	}
}

// checkCPUList reads a list such as "0-3,8".
func checkCPUList(list string) error {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		low, err := strconv.Atoi(first)
		if err != nil {
			return err
		}
		if !isRange {
			continue
		}
		high, err := strconv.Atoi(last)
		if err != nil {
			return err
		}
		if low > high {
			return &strconv.NumError{Func: "range", Num: part, Err: strconv.ErrRange}
		}
	}
	return nil
}

func (c *checker) shutdown() {
	kc := c.kc
	total, critical := kc.ShutdownGracePeriod.Duration, kc.ShutdownGracePeriodCriticalPods.Duration
	byPriority := len(kc.ShutdownGracePeriodByPodPriority) > 0
	if !c.features.Enabled("GracefulNodeShutdown") {
		c.must(total <= 0 && critical <= 0, "shutdownGracePeriod", "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown")
	} else {
		c.must(critical <= total, "shutdownGracePeriodCriticalPods", "shutdownGracePeriodCriticalPods %v must be <= shutdownGracePeriod %v", critical, total)
		c.must(total == 0 || total >= time.Second, "shutdownGracePeriod", "shutdownGracePeriod %v must be either zero or otherwise >= 1 sec", total)
		c.must(critical == 0 || critical >= time.Second, "shutdownGracePeriodCriticalPods", "shutdownGracePeriodCriticalPods %v must be either zero or otherwise >= 1 sec", critical)
	}
	if !c.features.Enabled("GracefulNodeShutdownBasedOnPodPriority") {
		c.must(!byPriority, "shutdownGracePeriodByPodPriority", "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority")
		return
	}
	c.must(!byPriority || total <= 0 && critical <= 0, "shutdownGracePeriodByPodPriority", "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time")
}
