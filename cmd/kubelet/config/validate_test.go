package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// checked loads a file of these lines and validates it.
func validated(t *testing.T, text string, gates map[string]bool) error {
	t.Helper()
	loaded, err := NewLoader().Load(Files{Main: write(t, t.TempDir(), "k.yaml", header+text+"\n")})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	all, err := StockGates()
	if err != nil {
		t.Fatal(err)
	}
	features, err := all.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, on := range gates { // also those that nodekit does not let anyone set
		features.on[name] = on
	}
	return Validate(&loaded.Kubelet, features)
}

// A row for each rule, in the words of the stock kubelet v1.37.2.
func TestValidate(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", ""},
		{"nodeLeaseDurationSeconds: -1", "nodeLeaseDurationSeconds must be greater than 0"},
		{"systemCgroups: /s", "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified"},
		{"eventBurst: -1", "eventBurst (--event-burst) -1 must not be a negative number"},
		{"eventRecordQPS: -1", "eventRecordQPS (--event-qps) -1 must not be a negative number"},
		{"healthzPort: 65536", "healthzPort (--healthz-port) 65536 must be between 1 and 65535, inclusive"},
		{"cpuCFSQuotaPeriod: 100us", "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 100µs must be between 1ms and 1sec, inclusive"},
		{"imageGCHighThresholdPercent: 101", "imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive"},
		{"imageGCLowThresholdPercent: -1", "imageGCLowThresholdPercent (--image-gc-low-threshold) -1 must be between 0 and 100, inclusive"},
		{"imageGCLowThresholdPercent: 90", "imageGCLowThresholdPercent (--image-gc-low-threshold) 90 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85"},
		{"imageMinimumGCAge: -1s", "imageMinimumGCAge -1s must not be negative"},
		{"imageMaximumGCAge: -1s", "imageMaximumGCAge -1s must not be negative"},
		{"imageMaximumGCAge: 1m", "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 2m0s"},
		{"iptablesDropBit: 32", "iptablesDropBit (--iptables-drop-bit) 32 must be between 0 and 31, inclusive"},
		{"kubeAPIBurst: -1", "kubeAPIBurst (--kube-api-burst) -1 must not be a negative number"},
		{"kubeAPIQPS: -1", "kubeAPIQPS (--kube-api-qps) -1 must not be a negative number"},
		{"nodeStatusMaxImages: -2", "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater"},
		{"maxOpenFiles: -1", "maxOpenFiles (--max-open-files) -1 must not be a negative number"},
		{"maxPods: -1", "maxPods (--max-pods) -1 must not be a negative number"},
		{"oomScoreAdj: 1001", "oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive"},
		{"podsPerCore: -1", "podsPerCore (--pods-per-core) -1 must not be a negative number"},
		{"port: -1", "port (--port) -1 must be between 1 and 65535, inclusive"},
		{"readOnlyPort: -1", "readOnlyPort (--read-only-port) -1 must be between 0 and 65535, inclusive"},
		{"registryBurst: -1", "registryBurst (--registry-burst) -1 must not be a negative number"},
		{"registryPullQPS: -1", "registryPullQPS (--registry-qps) -1 must not be a negative number"},
		{"maxParallelImagePulls: 0", "maxParallelImagePulls 0 must be a positive number"},
		{"maxParallelImagePulls: 2\nserializeImagePulls: true", "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false"},
		{"runOnce: true", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"},
		{"registerWithTaints: [{key: k, effect: NoSchedule, timeAdded: \"2020-01-01T00:00:00Z\"}]", "taint.TimeAdded is not nil"},
		{"topologyManagerPolicy: foo", `topologyManagerPolicy (--topology-manager-policy) "foo" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]`},
		{"topologyManagerScope: foo", `topologyManagerScope (--topology-manager-scope) "foo" must be one of: "container", or "pod"`},
		{"shutdownGracePeriodCriticalPods: 20s\nshutdownGracePeriod: 10s", "shutdownGracePeriodCriticalPods 20s must be <= shutdownGracePeriod 10s"},
		{"shutdownGracePeriod: 500ms", "shutdownGracePeriod 500ms must be either zero or otherwise >= 1 sec"},
		{"shutdownGracePeriod: 3s\nshutdownGracePeriodCriticalPods: -1s", "shutdownGracePeriodCriticalPods -1s must be either zero or otherwise >= 1 sec"},
		{"shutdownGracePeriod: 3s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 2}]", "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"},
		{"memorySwap: {swapBehavior: UnlimitedSwap}", `memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"`},
		{"crashLoopBackOff: {maxContainerRestartPeriod: 500ms}", "CrashLoopBackOff.MaxContainerRestartPeriod (got: 0.5 seconds) must be set between 1s and 300s"},
		{"enforceNodeAllocatable: [pods, pods]", `duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)`},
		{"enforceNodeAllocatable: [system-reserved]", `systemReservedCgroup (--system-reserved-cgroup) must be specified when "system-reserved" or "system-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)`},
		{"enforceNodeAllocatable: [kube-reserved-compressible]", `kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or "kube-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)`},
		{"enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /k", `both "kube-reserved" and "kube-reserved-compressible" cannot be specified together in enforceNodeAllocatable (--enforce-node-allocatable)`},
		{"enforceNodeAllocatable: [none, pods]", `enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when "none" is specified`},
		{"enforceNodeAllocatable: [all]", `option "all" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"`},
		{"cgroupsPerQOS: false", `cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in enforceNodeAllocatable (--enforce-node-allocatable)`},
		{"hairpinMode: foo", `option "foo" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`},
		{"imagePullCredentialsVerificationPolicy: Maybe", `option "Maybe" specified for imagePullCredentialsVerificationPolicy. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"`},
		{"reservedSystemCPUs: 0-1\nsystemReservedCgroup: /s", "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"},
		{"reservedSystemCPUs: 3-1", `unable to parse reservedSystemCPUs (--reserved-cpus) 3-1, error: `},
		{"reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]", `the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted`},
		{"reservedMemory: [{numaNode: 0, limits: {memory: 0}}]", `reserved memory may not be zero for NUMA node 0 and resource "memory"`},
		{"reservedMemory: [{numaNode: 0, limits: {memory: 1}}, {numaNode: 0, limits: {memory: 1}}]", `the reserved memory has a duplicate value for NUMA node 0 and resource "memory"`},
		{"memoryThrottlingFactor: 1.5", "memoryThrottlingFactor 1.5 must be greater than 0 and less than or equal to 1.0"},
		{"memoryReservationPolicy: Some", `option "Some" specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"`},
		{"enableSystemLogQuery: true\nenableSystemLogHandler: false", "enableSystemLogHandler is required for enableSystemLogQuery"},
		{"containerLogMaxWorkers: 0", "containerLogMaxWorkers must be greater than or equal to 1"},
		{"containerLogMonitorInterval: 2s", "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s"},
		{"containerLogMaxFiles: 1", "containerLogMaxFiles must be greater than 1"},
		{"podLogsDir: /logs//x", `pod logs path "/logs//x" must be normalized`},
		{"podLogsDir: /lögs", `pod logs path "/lögs" must contain ASCII characters only`},
		{"userNamespaces: {idsPerPod: 1}", "userNamespaces.idsPerPod must not be less than 65536"},
		{"userNamespaces: {idsPerPod: 65537}", "userNamespaces.idsPerPod must be a multiple of 65536"},
		{"userNamespaces: {idsPerPod: 4294967296}", "userNamespaces.idsPerPod must not be more than 4294967295"},
		{"defaultPodSysctls: {a: b}", "DefaultPodSysctls feature gate is required for Kubelet configuration option defaultPodSysctls"},
		// Rules that the stock kubelet has elsewhere, or finds out about later.
		{"address: here", "address (--address) here must be an IP address"},
		{"clusterDNS: [dns]", "clusterDNS (--cluster-dns) dns must be an IP address"},
		{"clusterDomain: a_b", "clusterDomain (--cluster-domain) a_b must be a DNS subdomain"},
		{"containerLogMaxSize: huge", `containerLogMaxSize (--container-log-max-size) "huge" must be a quantity such as "10Mi"`},
		{"cgroupDriver: none", `cgroupDriver (--cgroup-driver) "none" must be one of: ["cgroupfs" "systemd"]`},
		{"authorization: {mode: Never}", `authorization.mode (--authorization-mode) "Never" must be one of: ["AlwaysAllow" "Webhook"]`},
		{"tlsMinVersion: TLS1", `tlsMinVersion (--tls-min-version) "TLS1" must be one of: ["VersionTLS10" "VersionTLS11" "VersionTLS12" "VersionTLS13"]`},
		{"tlsCipherSuites: [ROT13]", `tlsCipherSuites (--tls-cipher-suites) "ROT13" is not a cipher suite of Go's crypto/tls`},
		{"tlsCurvePreferences: [70000]", "curve preference 70000 is out of range (must be 1-65535)"},
		{"tlsCurvePreferences: [29, 29]", "duplicate curve preference 29"},
		{"tlsCurvePreferences: [1]", "curve preference 1 is not supported by the current Go version"},
		{"tlsCertFile: /c", "tlsCertFile (--tls-cert-file) and tlsPrivateKeyFile (--tls-private-key-file) must be set together"},
		{"logging: {format: xml}", `logging.format (--logging-format) "xml" must be one of: ["text" "json"]`},
		{"logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}", "logging.vmodule (--vmodule) is only supported for text log format"},
		{"logging: {options: {json: {splitStream: true}}}", "logging.options needs the feature gate LoggingAlphaOptions, which nodekit does not have"},
		{"tracing: {samplingRatePerMillion: 1000001}", "tracing.samplingRatePerMillion 1000001 must be between 0 and 1000000, inclusive"},
		{"tracing: {endpoint: \"http://x\"}", `tracing.endpoint "http://x": unsupported scheme: http`},
		{"cpuManagerPolicy: dynamic", `cpuManagerPolicy (--cpu-manager-policy) "dynamic" must be one of: ["none" "static"]`},
	} {
		err := validated(t, row.text, nil)
		want := "invalid configuration: " + row.want
		if row.want == "" {
			if err != nil {
				t.Errorf("the defaults: %v", err)
			}
			continue
		}
		var broken InvalidError
		if !errors.As(err, &broken) || !slices.ContainsFunc(broken, func(one Invalid) bool { return strings.HasPrefix(one.Error(), want) }) {
			t.Errorf("%q:\n got %v\nwant %s", row.text, err, want)
		}
	}
}

// Rules that hold only while a gate is off or on.
func TestValidateWithGates(t *testing.T) {
	for _, row := range []struct {
		text, gate string
		on         bool
		want       string
	}{
		{"cpuCFSQuotaPeriod: 50ms", "CustomCPUCFSQuotaPeriod", false, "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 50ms requires feature gate CustomCPUCFSQuotaPeriod"},
		{"serverTLSBootstrap: true", "RotateKubeletServerCertificate", false, "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate"},
		{"shutdownGracePeriod: 3s", "GracefulNodeShutdown", false, "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"},
		{"shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 2}]", "GracefulNodeShutdownBasedOnPodPriority", false, "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"},
		{"featureGates: {KubeletCrashLoopBackOffMax: false}\ncrashLoopBackOff: {maxContainerRestartPeriod: 9s}", "KubeletCrashLoopBackOffMax", false, "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set"},
		{"featureGates: {KubeletCrashLoopBackOffMax: false}", "KubeletCrashLoopBackOffMax", true, "FeatureGate KubeletCrashLoopBackOffMax is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set"},
		{"memoryThrottlingFactor: 0.8", "MemoryQoS", false, "memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled"},
		{"memoryReservationPolicy: TieredReservation", "MemoryQoS", false, `memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled`},
		{"", "KubeletEnsureSecretPulledImages", false, "`imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"},
		{"defaultPodSysctls: {Kernel: x}", "DefaultPodSysctls", true, `"Kernel" is not a valid sysctl name for defaultPodSysctls`},
		{"defaultPodSysctls: {vm.swappiness: x}", "DefaultPodSysctls", true, `"vm.swappiness" is not known to be namespaced for defaultPodSysctls`},
		{"defaultPodSysctls: {net.core.somaxconn: a, net/core/somaxconn: b}", "DefaultPodSysctls", true, `duplicate sysctl "net.core.somaxconn" found in defaultPodSysctls`},
	} {
		err := validated(t, row.text, map[string]bool{row.gate: row.on})
		if err == nil || !strings.Contains(err.Error(), "invalid configuration: "+row.want) {
			t.Errorf("%q with %s=%t:\n got %v\nwant %s", row.text, row.gate, row.on, err, row.want)
		}
	}
}

func TestFieldsOf(t *testing.T) {
	err := validated(t, "maxPods: -1\nport: -1", nil)
	if got := FieldsOf(err); len(got) != 2 || !slices.Contains(got, "maxPods") || !slices.Contains(got, "port") {
		t.Errorf("fields %v of %v", got, err)
	}
	gates, _ := StockGates()
	_, err = gates.Resolve(map[string]bool{"NoSuchGate": true})
	if got := FieldsOf(err); len(got) != 1 || got[0] != "featureGates.NoSuchGate" {
		t.Errorf("fields %v of %v", got, err)
	}
	if got := FieldsOf(errors.New("x")); got != nil {
		t.Errorf("fields of another error: %v", got)
	}
}
