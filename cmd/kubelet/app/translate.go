package app

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node/admission"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/wire"
	"nodekit.dev/resources"
)

// translate turns the configuration into plain fields of each part. No part
// knows a gate or a KubeletConfiguration. A nil member is of an agent that stands
// alone.
func translate(ctx context.Context, s settings, log *slog.Logger) (cfg wire.Config, member *cluster.Config, err error) {
	f, kc, features := s.flags, &s.loaded.Kubelet, s.features
	cfg = wire.Default()
	cfg.Log = log
	if cfg.NodeName, err = nodeName(f.hostname); err != nil {
		return cfg, nil, err
	}
	if cfg.NodeIPs, err = nodeIPs(ctx, f.nodeIP); err != nil {
		return cfg, nil, err
	}
	cfg.Node.HostIPs = followIPs(f.nodeIP, kc.NodeStatusUpdateFrequency.Duration, nodeIPs, log)
	if cfg.RootDir, err = filepath.Abs(f.rootDir); err != nil {
		return cfg, nil, err
	}
	if cfg.LocalObjects, err = absolute(f.localObjects); err != nil {
		return cfg, nil, err
	}
	cfg.PodLogsDir = filepath.Clean(kc.PodLogsDir)
	cfg.Host = wire.Host{
		LogLinksDir: logLinksDir(cfg.PodLogsDir), Hosts: true, PodCgroups: *kc.CgroupsPerQOS, ResolvConf: *kc.ResolverConfig,
		PluginRegistry: true,
		IPTables:       *kc.MakeIPTablesUtilChains,
	}
	runtimeConfig(&cfg, kc, features)
	ruleConfig(&cfg, kc, features)
	specConfig(&cfg, kc)
	podEnvironment(&cfg, kc, features)
	volumeConfig(&cfg, kc, features)
	if member, err = membership(s); err != nil {
		return cfg, nil, err
	}
	if member == nil {
		cfg.PodCIDR = kc.PodCIDR
	}
	if member != nil && features.Enabled("NodeDeclaredFeatures") {
		cfg.Admission.Features = admission.Features{Version: kubernetesVersion, Declared: member.Register.DeclaredFeatures}
	}
	return cfg, member, logConfig(&cfg, kc)
}

// logLinksDir stands beside the pod logs: /var/log/containers for the default
// /var/log/pods, so that agents with logs of their own keep apart.
func logLinksDir(podLogs string) string { return filepath.Join(filepath.Dir(podLogs), "containers") }

func runtimeConfig(cfg *wire.Config, kc *config.KubeletConfiguration, features config.Features) {
	cfg.CRI.Endpoint = kc.ContainerRuntimeEndpoint
	cfg.CRI.ImageEndpoint = kc.ImageServiceEndpoint
	cfg.CRI.RequestTimeout = kc.RuntimeRequestTimeout.Duration
	cfg.CRI.StreamLists = features.Enabled("CRIListStreaming")
	// Events are hints and always on where the runtime has them; only an
	// explicit EventedPLEG=false turns them off (docs/behaviour.md).
	if on, set := features.SetTo("EventedPLEG"); set {
		cfg.Observe.Events = on
	}
	switch {
	case kc.SerializeImagePulls != nil && *kc.SerializeImagePulls:
		cfg.Images.MaxParallel = 1
	case kc.MaxParallelImagePulls != nil:
		cfg.Images.MaxParallel = int(*kc.MaxParallelImagePulls)
	}
}

func volumeConfig(cfg *wire.Config, kc *config.KubeletConfiguration, features config.Features) {
	cfg.VolumeStats.Period = kc.VolumeStatsAggPeriod.Duration
	cfg.VolumeStats.Quotas = features.Enabled("LocalStorageCapacityIsolationFSQuotaMonitoring")
	cfg.SELinux.OneUser = features.Enabled("SELinuxMountReadWriteOncePod")
	cfg.SELinux.AllVolumes = features.Enabled("SELinuxMount")
	cfg.SizeLimits = *kc.LocalStorageCapacityIsolation
	cfg.VolumeStats.Health = features.Enabled("CSIVolumeHealth")
}

func ruleConfig(cfg *wire.Config, kc *config.KubeletConfiguration, features config.Features) {
	rules := &cfg.Node.Rules
	if features.Enabled("ReduceDefaultCrashLoopBackOffDecay") {
		rules.BackoffBase, rules.BackoffMax = time.Second, time.Minute
	}
	if p := kc.CrashLoopBackOff.MaxContainerRestartPeriod; p != nil {
		rules.BackoffMax = p.Duration
		rules.BackoffBase = min(rules.BackoffBase, rules.BackoffMax)
	}
	rules.RestartRules = features.Enabled("ContainerRestartRules")
	rules.ProbesAfterRestart = features.Enabled("ChangeContainerStatusOnKubeletRestart")
	rules.RestartAllContainers = features.Enabled("RestartAllContainersOnContainerExits")
}

func specConfig(cfg *wire.Config, kc *config.KubeletConfiguration) {
	cfg.Spec.ClusterDNS = kc.ClusterDNS
	cfg.Spec.ClusterDomain = kc.ClusterDomain
	cfg.Spec.LocalDNS = *kc.ResolverConfig == ""
	cfg.Spec.SeccompDefault = *kc.SeccompDefault
	cfg.Spec.AllowedUnsafeSysctls = kc.AllowedUnsafeSysctls
	cfg.Spec.Cgroups = resources.CgroupNames{
		Driver: resources.CgroupDriver(kc.CgroupDriver), Root: cgroupRoot(kc.CgroupRoot),
	}
	cfg.Cgroups.PodPids = max(0, *kc.PodPidsLimit) // -1 is as many as the node allows
	cfg.Spec.CPUQuota = resources.CPUQuota{Enforce: *kc.CPUCFSQuota, Period: kc.CPUCFSQuotaPeriod.Duration}
}

// cgroupRoot makes "agents/one" and "/agents/one/" the same; "/" is the root.
func cgroupRoot(root string) string {
	root = strings.Trim(root, "/")
	if root == "" {
		return ""
	}
	return "/" + root
}

func logConfig(cfg *wire.Config, kc *config.KubeletConfiguration) error {
	size, err := resource.ParseQuantity(kc.ContainerLogMaxSize)
	if err != nil {
		return err
	}
	cfg.Logs.MaxSize = size.Value()
	cfg.Logs.MaxFiles = int(*kc.ContainerLogMaxFiles)
	cfg.Logs.Workers = int(*kc.ContainerLogMaxWorkers)
	cfg.Logs.Interval = kc.ContainerLogMonitorInterval.Duration
	return nil
}
