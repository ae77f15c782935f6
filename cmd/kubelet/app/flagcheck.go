package app

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"nodekit.dev/cmd/kubelet/config"
)

// warnDeprecated prints one line per deprecated flag that was used.
func warnDeprecated(set *pflag.FlagSet, w io.Writer) {
	for _, v := range given(set) {
		if v.flag.Deprecated != "" {
			fmt.Fprintf(w, "Flag --%s has been deprecated, %s\n", v.flag.Name, v.flag.Deprecated)
		}
	}
}

// warnIneffective names the flags without a field that change nothing yet, by
// part; those with a field are told with the fields.
func warnIneffective(set *pflag.FlagSet, log *slog.Logger) {
	byPart := map[string][]string{}
	for _, v := range given(set) {
		switch {
		case v.flag.Field != "" || shown(v.now) == v.flag.Default:
		case v.flag.State == config.Later:
			byPart[v.flag.Text] = append(byPart[v.flag.Text], "--"+v.flag.Name)
		case v.flag.State == config.Differs:
			log.Info("a flag has no effect here", "flag", "--"+v.flag.Name, "reason", v.flag.Text)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(byPart)) {
		log.Warn("these flags are accepted but have no effect yet", "part", part, "flags", byPart[part])
	}
}

// validate checks the flags that no field stands for.
func (f *flags) validate(vendorLabel func(key string) bool) error {
	if f.mounter != "" {
		return fmt.Errorf("--experimental-mounter-path %q: a mounter in a container is not supported, as its volumes are CSI's today; remove the flag", f.mounter)
	}
	if f.exitOnLockContention && f.lockFile == "" {
		return fmt.Errorf("cannot exit on lock file contention: no lock file specified; set --lock-file")
	}
	if f.cloudProvider != "" && f.cloudProvider != "external" {
		return fmt.Errorf("--cloud-provider %q: cloud providers inside of the kubelet were removed in v1.29; use external, or remove the flag", f.cloudProvider)
	}
	return validateLabels(f.nodeLabels, vendorLabel)
}

// kubeletLabels are the labels below kubernetes.io and k8s.io that a node may
// give itself, beside those of kubeletLabelDomains.
var kubeletLabels = [...]string{
	"beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
	"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
	corev1.LabelArchStable, corev1.LabelHostname, corev1.LabelOSStable,
	corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
}

var kubeletLabelDomains = [...]string{corev1.LabelNamespaceSuffixKubelet, corev1.LabelNamespaceSuffixNode}

// validateLabels has the stock kubelet's rules for --node-labels; a vendor may
// allow more.
func validateLabels(labels map[string]string, vendorLabel func(key string) bool) error {
	var unknown, invalid []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if reservedLabel(key) && !kubeletLabel(key) && !vendorLabel(key) {
			unknown = append(unknown, key)
		}
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			invalid = append(invalid, fmt.Sprintf("'%s' - %s", key, strings.Join(problems, ", ")))
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			invalid = append(invalid, fmt.Sprintf("'%s' - %s", labels[key], strings.Join(problems, ", ")))
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: %v\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (%s) or be in the specifically allowed set (%s)",
			unknown, strings.Join(kubeletLabelDomains[:], ", "), strings.Join(kubeletLabels[:], ", "))
	}
	if len(invalid) > 0 {
		return fmt.Errorf("invalid node labels: %s", strings.Join(invalid, "; "))
	}
	return nil
}

// below says that a domain is another one or stands below it.
func below(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

func labelDomain(key string) string {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return domain
}

func reservedLabel(key string) bool {
	domain := labelDomain(key)
	return below(domain, "kubernetes.io") || below(domain, "k8s.io")
}

func kubeletLabel(key string) bool {
	domain := labelDomain(key)
	return slices.Contains(kubeletLabels[:], key) ||
		slices.ContainsFunc(kubeletLabelDomains[:], func(allowed string) bool { return below(domain, allowed) })
}
