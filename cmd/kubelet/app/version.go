package app

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// kubernetesVersion is the Kubernetes release whose behaviour this is.
const kubernetesVersion = "v1.37.2"

// Version is that of the Kubernetes release whose behaviour this is, with the
// version of this module behind it, such as "v1.37.2+nodekit.0.37.0". It is a
// semantic version, as tools that ask a kubelet for its version want one.
func Version() string {
	own := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		own = ownVersion(info)
	}
	return kubernetesVersion + "+nodekit." + own
}

// ownVersion is the version of the module, or the commit it was built from.
func ownVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return strings.ReplaceAll(strings.TrimPrefix(v, "v"), "+", "-") // one plus is all that semver allows
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}

// printVersion answers --version, and --version=raw with all that is known.
func printVersion(w io.Writer, form, version string) error {
	if form != "raw" {
		_, err := fmt.Fprintln(w, "Kubernetes", version)
		return err
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	_, err := fmt.Fprintf(w, "Kubernetes %s\n%s", version, info)
	return err
}
