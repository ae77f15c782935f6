package app

import "runtime/debug"

// kubernetesMinor is the Kubernetes release whose behaviour this is.
const kubernetesMinor = "v1.37"

// Version is the module's version, or the commit it was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return kubernetesMinor
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return kubernetesMinor + "+" + s.Value[:min(12, len(s.Value))]
		}
	}
	return kubernetesMinor + "+unreleased"
}
