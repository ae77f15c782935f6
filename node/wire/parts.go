package wire

import (
	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/register"
	"nodekit.dev/runtime/images"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// Parts is all that an [Option] may set. A part that is set is used, and its
// default is not built; groups are added to.
type Parts struct {
	node.Parts
	// PullAuth finds credentials for images; nil: Config.Images.Auth, which is
	// nil for anonymous pulls.
	PullAuth images.PullAuth
	// Execer runs the commands of lifecycle handlers; nil: the CRI runtime.
	Execer handlers.Execer
	// VolumePlugins come before the stock ones and so take their volumes.
	VolumePlugins []node.Ordered[volume.Plugin]
	// NodeSetters fill in the Node object, among the stock ones or in the place
	// of one; NodeResources are further sources of capacity. Both only count in
	// a cluster, see register.Parts.
	NodeSetters   []node.Ordered[register.Setter]
	NodeResources []node.Ordered[register.Contributor]
}

// Option changes the parts of an agent.
type Option func(*Parts)

// WithParts sets parts before the defaults are made.
func WithParts(set func(*Parts)) Option { return set }

// WithSource adds a source of pods.
func WithSource(s node.Source) Option {
	return func(p *Parts) {
		p.Sources = append(p.Sources, node.Ordered[node.Source]{Name: s.Name(), Value: s})
	}
}

// VolumeConfig is how volumes are mounted, where the member is told of failures.
func VolumeConfig(cfg Config, m *Member) volume.Config {
	out := cfg.Volume
	if out.Observer.RefreshFailed == nil {
		out.Observer.RefreshFailed = m.RefreshFailed()
	}
	return out
}

// VolumePlugins are the vendor's in their order, then the stock ones, which get
// their content from the sources.
func VolumePlugins(vendor []node.Ordered[volume.Plugin], sources plugins.Sources) ([]volume.Plugin, error) {
	sorted, err := node.InOrder("volume plugin", vendor)
	if err != nil {
		return nil, err
	}
	var all []volume.Plugin
	for _, p := range sorted {
		all = append(all, p.Value)
	}
	all = append(all, plugins.Default()...)
	return append(all, plugins.FromObjects(sources)...), nil
}
