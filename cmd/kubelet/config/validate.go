package config

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Invalid is one value that the configuration must not have.
type Invalid struct {
	Field string // path in KubeletConfiguration, lower camel case
	Flag  string // without dashes; empty: no flag sets it
	Value any
	Rule  string // what is allowed: "must be ..."
	// Text replaces the whole sentence where the stock kubelet has its own.
	Text string
}

func (i Invalid) Error() string {
	if i.Text != "" {
		return "invalid configuration: " + i.Text
	}
	flag := ""
	if i.Flag != "" {
		flag = " (--" + i.Flag + ")"
	}
	return fmt.Sprintf("invalid configuration: %s%s %v %s", i.Field, flag, i.Value, i.Rule)
}

// InvalidError holds everything that is wrong, all at once.
type InvalidError []Invalid

func (e InvalidError) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// Validate checks a complete configuration and returns an InvalidError with
// every field that breaks a rule, nil if none does. It reads nothing but kc.
func Validate(kc *KubeletConfiguration, features Features) error {
	c := checker{kc: kc, features: features}
	for _, group := range []func(*checker){
		(*checker).network, (*checker).runtime, (*checker).logs, (*checker).images,
		(*checker).pods, (*checker).node, (*checker).cgroups, (*checker).shutdown, (*checker).policies,
	} {
		group(&c)
	}
	if len(c.found) == 0 {
		return nil
	}
	return c.found
}

type checker struct {
	kc       *KubeletConfiguration
	features Features
	found    InvalidError
}

func (c *checker) must(ok bool, field, flag string, value any, rule string) {
	if !ok {
		c.found = append(c.found, Invalid{Field: field, Flag: flag, Value: value, Rule: rule})
	}
}

func (c *checker) network() {
	kc := c.kc
	c.must(net.ParseIP(kc.HealthzBindAddress) != nil, "healthzBindAddress", "healthz-bind-address", kc.HealthzBindAddress, "must be an IP address")
	c.must(inRange(*kc.HealthzPort, 0, 65535), "healthzPort", "healthz-port", *kc.HealthzPort, "must be between 0 and 65535, inclusive")
	c.must(net.ParseIP(kc.Address) != nil, "address", "address", kc.Address, "must be an IP address")
	c.must(inRange(kc.Port, 1, 65535), "port", "port", kc.Port, "must be between 1 and 65535, inclusive")
	c.must(inRange(kc.ReadOnlyPort, 0, 65535), "readOnlyPort", "read-only-port", kc.ReadOnlyPort, "must be between 0 and 65535, inclusive")
	for _, dns := range kc.ClusterDNS {
		c.must(net.ParseIP(dns) != nil, "clusterDNS", "cluster-dns", dns, "must be an IP address")
	}
	c.must(kc.ClusterDomain == "" || len(validation.IsDNS1123Subdomain(kc.ClusterDomain)) == 0, "clusterDomain", "cluster-domain", kc.ClusterDomain, "must be a DNS subdomain")
	c.must(inRange(*kc.IPTablesMasqueradeBit, 0, 31), "iptablesMasqueradeBit", "", *kc.IPTablesMasqueradeBit, "must be between 0 and 31, inclusive")
	c.must(inRange(*kc.IPTablesDropBit, 0, 31), "iptablesDropBit", "", *kc.IPTablesDropBit, "must be between 0 and 31, inclusive")
	c.must(oneOf(kc.HairpinMode, "none", "hairpin-veth", "promiscuous-bridge"), "hairpinMode", "hairpin-mode", kc.HairpinMode, `must be one of: ["none", "hairpin-veth", "promiscuous-bridge"]`)
}

func (c *checker) runtime() {
	kc := c.kc
	if kc.ContainerRuntimeEndpoint == "" {
		c.found = append(c.found, Invalid{Field: "containerRuntimeEndpoint", Text: "the containerRuntimeEndpoint was not specified or empty"})
	}
	c.must(kc.RuntimeRequestTimeout.Duration > 0, "runtimeRequestTimeout", "runtime-request-timeout", kc.RuntimeRequestTimeout.Duration, "must be greater than zero")
	c.must(!kc.RunOnce, "runOnce", "runonce", kc.RunOnce, "must be false: run-once mode is gone; use a static pod with restartPolicy Never")
	if p := kc.CrashLoopBackOff.MaxContainerRestartPeriod; p != nil {
		c.must(c.features.Enabled("KubeletCrashLoopBackOffMax"), "crashLoopBackOff.maxContainerRestartPeriod", "", p.Duration, "needs feature gate KubeletCrashLoopBackOffMax")
		c.must(p.Duration >= time.Second && p.Duration <= 300*time.Second, "crashLoopBackOff.maxContainerRestartPeriod", "", p.Duration, "must be between 1s and 300s, inclusive")
	}
}

func (c *checker) logs() {
	kc := c.kc
	size, err := resource.ParseQuantity(kc.ContainerLogMaxSize)
	c.must(err == nil && size.Value() >= 0, "containerLogMaxSize", "container-log-max-size", fmt.Sprintf("%q", kc.ContainerLogMaxSize), `must be a quantity such as "10Mi"`)
	c.must(*kc.ContainerLogMaxFiles > 1, "containerLogMaxFiles", "container-log-max-files", *kc.ContainerLogMaxFiles, "must be greater than 1")
	c.must(*kc.ContainerLogMaxWorkers >= 1, "containerLogMaxWorkers", "", *kc.ContainerLogMaxWorkers, "must be greater than or equal to 1")
	c.must(kc.ContainerLogMonitorInterval.Duration >= 3*time.Second, "containerLogMonitorInterval", "", kc.ContainerLogMonitorInterval.Duration, "must be greater than or equal to 3s")
	c.podLogsDir(kc.PodLogsDir)
	c.must(oneOf(kc.Logging.Format, "text", "json"), "logging.format", "logging-format", fmt.Sprintf("%q", kc.Logging.Format), `must be one of: ["text", "json"]`)
}

func (c *checker) podLogsDir(dir string) {
	c.must(filepath.IsAbs(dir), "podLogsDir", "", fmt.Sprintf("%q", dir), "must be an absolute path")
	c.must(filepath.Clean(dir) == strings.TrimSuffix(dir, "/"), "podLogsDir", "", fmt.Sprintf("%q", dir), "must be a clean path (no .. and no double slashes)")
	c.must(isASCII(dir), "podLogsDir", "", fmt.Sprintf("%q", dir), "must hold ASCII characters only")
}

func (c *checker) images() {
	kc := c.kc
	if kc.MaxParallelImagePulls != nil {
		serial := kc.SerializeImagePulls != nil && *kc.SerializeImagePulls
		c.must(*kc.MaxParallelImagePulls >= 1, "maxParallelImagePulls", "", *kc.MaxParallelImagePulls, "must be a positive number")
		c.must(!serial || *kc.MaxParallelImagePulls == 1, "maxParallelImagePulls", "", *kc.MaxParallelImagePulls, "cannot be larger than 1 unless serializeImagePulls is false")
	}
	c.must(inRange(*kc.ImageGCHighThresholdPercent, 0, 100), "imageGCHighThresholdPercent", "image-gc-high-threshold", *kc.ImageGCHighThresholdPercent, "must be between 0 and 100, inclusive")
	c.must(inRange(*kc.ImageGCLowThresholdPercent, 0, 100), "imageGCLowThresholdPercent", "image-gc-low-threshold", *kc.ImageGCLowThresholdPercent, "must be between 0 and 100, inclusive")
	c.must(*kc.ImageGCLowThresholdPercent < *kc.ImageGCHighThresholdPercent, "imageGCLowThresholdPercent", "image-gc-low-threshold", *kc.ImageGCLowThresholdPercent, fmt.Sprintf("must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) %d", *kc.ImageGCHighThresholdPercent))
	c.must(kc.ImageMaximumGCAge.Duration == 0 || kc.ImageMaximumGCAge.Duration > kc.ImageMinimumGCAge.Duration, "imageMaximumGCAge", "", kc.ImageMaximumGCAge.Duration, fmt.Sprintf("must be 0 or greater than imageMinimumGCAge %v", kc.ImageMinimumGCAge.Duration))
	c.must(*kc.RegistryPullQPS >= 0, "registryPullQPS", "registry-qps", *kc.RegistryPullQPS, "must not be a negative number")
	c.must(kc.RegistryBurst >= 0, "registryBurst", "registry-burst", kc.RegistryBurst, "must not be a negative number")
}

func (c *checker) pods() {
	kc := c.kc
	c.must(kc.MaxPods >= 0, "maxPods", "max-pods", kc.MaxPods, "must not be a negative number")
	c.must(kc.PodsPerCore >= 0, "podsPerCore", "pods-per-core", kc.PodsPerCore, "must not be a negative number")
	c.must(*kc.PodPidsLimit >= -1, "podPidsLimit", "pod-max-pids", *kc.PodPidsLimit, "must be -1 or greater")
	c.must(kc.FileCheckFrequency.Duration > 0, "fileCheckFrequency", "file-check-frequency", kc.FileCheckFrequency.Duration, "must be greater than zero")
	c.must(kc.HTTPCheckFrequency.Duration > 0, "httpCheckFrequency", "http-check-frequency", kc.HTTPCheckFrequency.Duration, "must be greater than zero")
	c.must(kc.EventBurst >= 0, "eventBurst", "event-burst", kc.EventBurst, "must not be a negative number")
	c.must(*kc.EventRecordQPS >= 0, "eventRecordQPS", "event-qps", *kc.EventRecordQPS, "must not be a negative number")
}

func (c *checker) node() {
	kc := c.kc
	c.must(*kc.NodeStatusMaxImages >= -1, "nodeStatusMaxImages", "node-status-max-images", *kc.NodeStatusMaxImages, "must be -1 or greater")
	c.must(kc.NodeLeaseDurationSeconds > 0, "nodeLeaseDurationSeconds", "", kc.NodeLeaseDurationSeconds, "must be greater than 0")
	c.must(*kc.KubeAPIQPS >= 0, "kubeAPIQPS", "kube-api-qps", *kc.KubeAPIQPS, "must not be a negative number")
	c.must(kc.KubeAPIBurst >= 0, "kubeAPIBurst", "kube-api-burst", kc.KubeAPIBurst, "must not be a negative number")
	c.must(kc.MaxOpenFiles >= 0, "maxOpenFiles", "max-open-files", kc.MaxOpenFiles, "must not be a negative number")
	for _, taint := range kc.RegisterWithTaints {
		c.must(taint.TimeAdded == nil, "taint.TimeAdded", "", "", "is not nil")
	}
}

func (c *checker) cgroups() {
	kc := c.kc
	c.must(oneOf(kc.CgroupDriver, "cgroupfs", "systemd"), "cgroupDriver", "cgroup-driver", fmt.Sprintf("%q", kc.CgroupDriver), `must be one of: ["cgroupfs", "systemd"]`)
	c.must(inRange(*kc.OOMScoreAdj, -1000, 1000), "oomScoreAdj", "oom-score-adj", *kc.OOMScoreAdj, "must be between -1000 and 1000, inclusive")
	period := kc.CPUCFSQuotaPeriod.Duration
	c.must(period >= time.Millisecond && period <= time.Second, "cpuCFSQuotaPeriod", "cpu-cfs-quota-period", period, "must be between 1ms and 1sec, inclusive")
	c.must(oneOf(kc.MemorySwap.SwapBehavior, "", "NoSwap", "LimitedSwap"), "memorySwap.swapBehavior", "", fmt.Sprintf("%q", kc.MemorySwap.SwapBehavior), `must be one of: "", "LimitedSwap" or "NoSwap"`)
	for _, key := range kc.EnforceNodeAllocatable {
		c.must(oneOf(key, "none", "pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible"),
			"enforceNodeAllocatable", "enforce-node-allocatable", fmt.Sprintf("%q", key), `must be one of: ["none", "pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible"]`)
	}
	if kc.MemoryThrottlingFactor != nil {
		c.must(*kc.MemoryThrottlingFactor > 0 && *kc.MemoryThrottlingFactor <= 1, "memoryThrottlingFactor", "", *kc.MemoryThrottlingFactor, "must be greater than 0 and less than or equal to 1.0")
	}
}

func (c *checker) shutdown() {
	total, critical := c.kc.ShutdownGracePeriod.Duration, c.kc.ShutdownGracePeriodCriticalPods.Duration
	c.must(critical <= total, "shutdownGracePeriodCriticalPods", "", critical, fmt.Sprintf("must be less than or equal to shutdownGracePeriod %v", total))
	c.must(total == 0 || total >= time.Second, "shutdownGracePeriod", "", total, "must be either zero or otherwise >= 1 sec")
	c.must(critical == 0 || critical >= time.Second, "shutdownGracePeriodCriticalPods", "", critical, "must be either zero or otherwise >= 1 sec")
}

func (c *checker) policies() {
	kc := c.kc
	c.must(oneOf(kc.TopologyManagerPolicy, "none", "best-effort", "restricted", "single-numa-node"), "topologyManagerPolicy", "topology-manager-policy", fmt.Sprintf("%q", kc.TopologyManagerPolicy), `must be one of: ["none", "best-effort", "restricted", "single-numa-node"]`)
	c.must(oneOf(kc.TopologyManagerScope, "container", "pod"), "topologyManagerScope", "topology-manager-scope", fmt.Sprintf("%q", kc.TopologyManagerScope), `must be one of: ["container", "pod"]`)
}

func inRange[T int32 | int64](v, low, high T) bool { return v >= low && v <= high }

func oneOf(v string, allowed ...string) bool {
	for _, a := range allowed {
		if v == a {
			return true
		}
	}
	return false
}

func isASCII(s string) bool {
	for _, r := range s {
		if r > 127 {
			return false
		}
	}
	return true
}
