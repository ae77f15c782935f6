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
	"nodekit.dev/volume/plugins"
)

// Module provides node.Mounter, whose manager keeps the content of volumes up to
// date, and *wire.Contents, which tells it. It asks for a *fxrun.Runner. A vendor's plugins are values of type
// node.Ordered[volume.Plugin] in the group "volumeplugins"; they come before
// the stock ones and so take their volumes.
func Module() fx.Option {
	return fx.Provide(mounter, contents)
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
	ThisNode        *wire.ThisNode          `optional:"true"`
	Events          wire.EventWriter        `optional:"true"`
	Claims          wire.Claims             `optional:"true"`
	ConfigMaps      plugins.ConfigMaps      `optional:"true"`
	Secrets         plugins.Secrets         `optional:"true"`
	Tokens          plugins.Tokens          `optional:"true"`
	TrustBundles    plugins.TrustBundles    `optional:"true"`
	PodCertificates plugins.PodCertificates `optional:"true"`
}

func (p parts) sources() plugins.Sources {
	this := p.ThisNode
	if this == nil {
		this = &wire.ThisNode{}
	}
	return wire.Sources(p.Config, wire.ClusterParts{
		ConfigMaps: p.ConfigMaps, Secrets: p.Secrets, Tokens: p.Tokens,
		TrustBundles: p.TrustBundles, PodCertificates: p.PodCertificates,
	}, this)
}

func contents() *wire.Contents { return &wire.Contents{} }

func mounter(lc fx.Lifecycle, r *fxrun.Runner, p parts) (node.Mounter, error) {
	all, err := wire.VolumePlugins(p.Vendor, p.sources())
	if err != nil {
		return nil, err
	}
	m, err := volume.New(wire.VolumeConfig(p.Config, p.Events, p.Claims), all, p.Log.With("part", "volume"))
	if err != nil {
		return nil, err
	}
	p.Contents.Keep(m)
	r.Run(lc, "volume-content", m.Run)
	return wire.Mounter(m, p.Specs), nil
}
