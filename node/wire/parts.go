package wire

import (
	"context"

	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/images"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
	"nodekit.dev/volume/stats"
)

// Parts is all that an [Option] may set. A part that is set is used, and its
// default is not built; groups are added to.
type Parts struct {
	node.Parts
	// PullAuth finds credentials for images; nil: Config.Images.Auth, which is
	// nil for anonymous pulls.
	PullAuth images.PullAuth
	// Execer runs the commands of lifecycle handlers and of probes; nil: the CRI
	// runtime.
	Execer handlers.Execer
	// VolumePlugins come before the stock ones and so take their volumes.
	VolumePlugins []node.Ordered[volume.Plugin]
	// VolumeReaders measure the volumes of the plugin they are named after.
	VolumeReaders []node.Ordered[stats.Reader]
	// CSIConnector makes connections to CSI drivers; nil: csi.Sockets.
	CSIConnector csi.Connector
	// VolumeStats have what was measured; nil: volume/stats.
	VolumeStats VolumeStats
	// ProbeParts are for the default prober alone.
	ProbeParts
	// ClusterParts are what the agent has of its cluster; Join makes those that
	// are nil, see cluster.Join.
	ClusterParts
	Join func(Joining) ([]Part, error)
}

// Joining is what parts of a cluster are made from.
type Joining struct {
	// Config is complete.
	Config Config
	// Parts are the agent's. What is set there stays, and what it replaces is
	// neither made nor run.
	Parts *Parts
	// ThisNode and Contents are the agent's.
	ThisNode *ThisNode
	Contents *Contents
	// Images and PodCIDR are the runtime's; nil: it does not speak the CRI.
	Images  func(context.Context) ([]runtime.ImageInfo, error)
	PodCIDR func(ctx context.Context, cidrs string) error
}

// Part is something that runs as long as the agent does.
type Part struct {
	Name string
	Run  func(context.Context) error
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
	return append(all, plugins.Stock(sources)...), nil
}
