package config

import (
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Rules about the runtime, images, logs and what pods get.

func (c *checker) runtime() {
	kc := c.kc
	c.must(kc.ContainerRuntimeEndpoint != "", "containerRuntimeEndpoint", "the containerRuntimeEndpoint was not specified or empty")
	c.must(kc.RuntimeRequestTimeout.Duration > 0, "runtimeRequestTimeout", "runtimeRequestTimeout (--runtime-request-timeout) %v must be greater than zero", kc.RuntimeRequestTimeout.Duration)
	period := kc.CrashLoopBackOff.MaxContainerRestartPeriod
	const field = "crashLoopBackOff.maxContainerRestartPeriod"
	switch on := c.features.Enabled("KubeletCrashLoopBackOffMax"); {
	case period == nil:
		c.must(!on, field, "FeatureGate KubeletCrashLoopBackOffMax is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set")
	case !on:
		c.must(false, field, "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set")
	default:
		c.must(period.Duration >= time.Second && period.Duration <= 300*time.Second, field,
			"CrashLoopBackOff.MaxContainerRestartPeriod (got: %v seconds) must be set between 1s and 300s", period.Seconds())
	}
}

func (c *checker) images() {
	kc := c.kc
	high, low := *kc.ImageGCHighThresholdPercent, *kc.ImageGCLowThresholdPercent
	between(c, "imageGCHighThresholdPercent", high, 0, 100)
	between(c, "imageGCLowThresholdPercent", low, 0, 100)
	c.must(low < high, "imageGCLowThresholdPercent",
		"imageGCLowThresholdPercent (--image-gc-low-threshold) %v must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) %v", low, high)
	youngest, oldest := kc.ImageMinimumGCAge.Duration, kc.ImageMaximumGCAge.Duration
	c.must(youngest >= 0, "imageMinimumGCAge", "imageMinimumGCAge %v must not be negative", youngest)
	c.must(oldest >= 0, "imageMaximumGCAge", "imageMaximumGCAge %v must not be negative", oldest)
	c.must(oldest <= 0 || oldest > youngest, "imageMaximumGCAge", "imageMaximumGCAge %v must be greater than imageMinimumGCAge %v", oldest, youngest)
	c.pulls()
}

func (c *checker) pulls() {
	kc := c.kc
	if most := kc.MaxParallelImagePulls; most != nil {
		serial := kc.SerializeImagePulls != nil && *kc.SerializeImagePulls
		c.must(*most >= 1, "maxParallelImagePulls", "maxParallelImagePulls %v must be a positive number", *most)
		c.must(!serial || *most <= 1, "maxParallelImagePulls", "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false")
	}
	const field = "imagePullCredentialsVerificationPolicy"
	policy, list := string(kc.ImagePullCredentialsVerificationPolicy), kc.PreloadedImagesVerificationAllowlist
	if !c.features.Enabled("KubeletEnsureSecretPulledImages") {
		c.must(policy == "", field, "`imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled")
		c.must(len(list) == 0, "preloadedImagesVerificationAllowlist", "`preloadedImagesVerificationAllowlist` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled")
		return
	}
	c.option(field, policy, "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")
	c.must(len(list) == 0 || policy == "NeverVerifyAllowlistedImages", "preloadedImagesVerificationAllowlist",
		"can't set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVerificationPolicy` is not \"NeverVerifyAllowlistedImages\"")
}

func (c *checker) logs() {
	kc := c.kc
	size, err := resource.ParseQuantity(kc.ContainerLogMaxSize)
	c.must(err == nil && size.Value() >= 0, "containerLogMaxSize", "containerLogMaxSize (--container-log-max-size) %q must be a quantity such as \"10Mi\"", kc.ContainerLogMaxSize)
	c.must(*kc.ContainerLogMaxWorkers >= 1, "containerLogMaxWorkers", "containerLogMaxWorkers must be greater than or equal to 1")
	c.must(kc.ContainerLogMonitorInterval.Duration >= 3*time.Second, "containerLogMonitorInterval", "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s")
	c.must(*kc.ContainerLogMaxFiles > 1, "containerLogMaxFiles", "containerLogMaxFiles must be greater than 1")
	dir := kc.PodLogsDir
	c.must(dir != "", "podLogsDir", "podLogsDir was not specified")
	c.must(filepath.IsAbs(dir), "podLogsDir", "pod logs path %q must be absolute path", dir)
	c.must(dir == "" || filepath.Clean(dir) == strings.TrimSuffix(dir, "/"), "podLogsDir", "pod logs path %q must be normalized", dir)
	c.must(isASCII(dir), "podLogsDir", "pod logs path %q must contain ASCII characters only", dir)
}

func (c *checker) logging() {
	l := c.kc.Logging
	c.must(l.Format == "text" || l.Format == "json", "logging.format", "logging.format (--logging-format) %q must be one of: %q", l.Format, []string{"text", "json"})
	c.must(l.FlushFrequency.Duration.Duration > 0, "logging.flushFrequency", "logging.flushFrequency (--log-flush-frequency) %v must be greater than zero", l.FlushFrequency.Duration.Duration)
	c.must(l.Verbosity <= math.MaxInt32, "logging.verbosity", "logging.verbosity (--v) %d must be at most %d", l.Verbosity, math.MaxInt32)
	c.must(len(l.VModule) == 0 || l.Format == "text", "logging.vmodule", "logging.vmodule (--vmodule) is only supported for text log format")
	for _, item := range l.VModule {
		c.must(item.FilePattern != "" && !strings.ContainsAny(item.FilePattern, "=,"), "logging.vmodule",
			"logging.vmodule (--vmodule): file pattern %q must not be empty and must not contain equal sign or comma", item.FilePattern)
	}
	text, js := l.Options.Text, l.Options.JSON
	c.must(!text.SplitStream && !js.SplitStream && text.InfoBufferSize.Value() == 0 && js.InfoBufferSize.Value() == 0, "logging.options",
		"logging.options needs the feature gate LoggingAlphaOptions, which nodekit does not have")
}

func (c *checker) pods() {
	c.must(*c.kc.PodPidsLimit >= -1, "podPidsLimit", "podPidsLimit (--pod-max-pids) %v must be -1 or greater", *c.kc.PodPidsLimit)
	if users := c.kc.UserNamespaces; users != nil && users.IDsPerPod != nil {
		const unit, field = 65536, "userNamespaces.idsPerPod"
		ids := *users.IDsPerPod
		switch {
		case ids < unit:
			c.must(false, field, "%s must not be less than %d", field, unit)
		case ids%unit != 0:
			c.must(false, field, "%s must be a multiple of %d", field, unit)
		default:
			c.must(ids <= math.MaxUint32, field, "%s must not be more than %d", field, int64(math.MaxUint32))
		}
	}
}

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

func (c *checker) sysctls() {
	set := c.kc.DefaultPodSysctls
	if len(set) == 0 {
		return
	}
	const field = "defaultPodSysctls"
	if !c.features.Enabled("DefaultPodSysctls") {
		c.must(false, field, "DefaultPodSysctls feature gate is required for Kubelet configuration option defaultPodSysctls")
		return
	}
	seen := map[string]bool{}
	for _, name := range sortedKeys(set) {
		dotted := strings.ReplaceAll(name, "/", ".")
		c.must(len(name) <= 253 && sysctlName.MatchString(name), field, "%q is not a valid sysctl name for defaultPodSysctls", name)
		c.must(isNamespaced(dotted), field, "%q is not known to be namespaced for defaultPodSysctls", name)
		c.must(!seen[dotted], field, "duplicate sysctl %q found in defaultPodSysctls", dotted)
		seen[dotted] = true
	}
}

// isNamespaced is about sysctls that a pod has for itself.
func isNamespaced(name string) bool {
	for _, prefix := range []string{"kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.", "net."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
