// Package volumefx provides node.Mounter over package volume in an fx graph.
// It holds no logic.
package volumefx

import (
	"log/slog"

	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/wire"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
	"nodekit.dev/volume/stats"
)

// Module provides wire.VolumeStats, and node.Mounter, whose manager keeps the content of volumes up to
// date, and *wire.Contents, which tells it. It asks for a *fxrun.Runner. A vendor's plugins are values of type
// node.Ordered[volume.Plugin] in the group "volumeplugins"; they come before
// the stock ones and so take their volumes.
func Module() fx.Option {
	return fx.Provide(mounter, contents, volumeStats, connector)
}

// parts are what the mounter is made of.
type parts struct {
	fx.In

	Config   wire.Config
	Log      *slog.Logger
	Specs    *podspec.Builder
	Contents *wire.Contents
	Vendor   []node.Ordered[volume.Plugin] `group:"volumeplugins"`

	// Each of these may be nil.
	Puller          node.Puller             `optional:"true"`
	ThisNode        *wire.ThisNode          `optional:"true"`
	Events          wire.EventWriter        `optional:"true"`
	Claims          wire.Claims             `optional:"true"`
	ConfigMaps      plugins.ConfigMaps      `optional:"true"`
	Secrets         plugins.Secrets         `optional:"true"`
	Tokens          plugins.Tokens          `optional:"true"`
	TrustBundles    plugins.TrustBundles    `optional:"true"`
	PodCertificates plugins.PodCertificates `optional:"true"`
	CSIDrivers      csi.Drivers             `optional:"true"`
	Connector       csi.Connector
}

func (p parts) cluster() wire.ClusterParts {
	return wire.ClusterParts{
		ConfigMaps: p.ConfigMaps, Secrets: p.Secrets, Tokens: p.Tokens,
		TrustBundles: p.TrustBundles, PodCertificates: p.PodCertificates, CSIDrivers: p.CSIDrivers,
	}
}

func connector() csi.Connector { return csi.Sockets{} }

func (p parts) sources() plugins.Sources {
	this := p.ThisNode
	if this == nil {
		this = &wire.ThisNode{}
	}
	sources := wire.Sources(p.Config, p.cluster(), this)
	sources.Images = wire.VolumeImages(p.Puller, p.Events)
	return sources
}

// measuring is what measures are made of. It asks for the Mounter so that the
// volumes of the default one are known.
type measuring struct {
	fx.In

	Config   wire.Config
	Contents *wire.Contents
	Mounter  node.Mounter
	Readers  []node.Ordered[stats.Reader] `group:"volumereaders"`
}

func volumeStats(lc fx.Lifecycle, r *fxrun.Runner, p measuring) (wire.VolumeStats, error) {
	from, runs, err := wire.MeasureVolumes(p.Config, p.Contents, p.Readers)
	for _, part := range runs {
		r.Run(lc, part.Name, part.Run)
	}
	return from, err
}

func contents() *wire.Contents { return &wire.Contents{} }

func mounter(lc fx.Lifecycle, r *fxrun.Runner, p parts) (node.Mounter, error) {
	all, err := wire.VolumePlugins(p.Vendor, p.sources())
	if err != nil {
		return nil, err
	}
	cfg, err := p.Contents.Labeling(p.Config, wire.VolumeConfig(p.Config, p.Events, p.Claims, p.Contents))
	if err != nil {
		return nil, err
	}
	drivers, runs, err := wire.CSI(p.Config, p.cluster(), p.Connector, p.Contents)
	if err != nil {
		return nil, err
	}
	for _, part := range runs {
		r.Run(lc, part.Name, part.Run)
	}
	m, err := volume.New(cfg, append(wire.WithQuotas(p.Config, all), drivers), p.Log.With("part", "volume"))
	if err != nil {
		return nil, err
	}
	p.Contents.Keep(m)
	r.Run(lc, "volume-content", m.Run)
	return wire.Mounter(m, p.Specs), nil
}
