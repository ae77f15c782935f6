package register

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"nodekit.dev/runtime"
)

// DeclaredFeatures are the names of the features that a node of that version
// tells the scheduler of, sorted, for Config.DeclaredFeatures. Enabled says
// whether a feature gate is on and the agent has what it names; rt is what the
// runtime can do, nil for not known.
func DeclaredFeatures(kubeletVersion string, enabled func(gate string) bool, rt *runtime.Features) ([]string, error) {
	v, err := version.ParseSemantic(kubeletVersion)
	if err != nil {
		return nil, fmt.Errorf("kubelet version %q: %w", kubeletVersion, err)
	}
	cfg := &nodedeclaredfeatures.NodeConfiguration{FeatureGates: gates(enabled), Version: v}
	if rt != nil {
		cfg.RuntimeFeatures.UserNamespacesHostNetwork = rt.UserNamespacesHostNetwork
		cfg.RuntimeFeatures.MountOptions = rt.MountOptions
	}
	return nodedeclaredfeatures.DefaultFramework.DiscoverNodeFeatures(cfg), nil
}

// gates fits the library's interface.
type gates func(gate string) bool

func (g gates) Enabled(gate string) bool { return g(gate) }
