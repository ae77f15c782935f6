// Package volumefx provides node.Mounter over package volume in an fx graph.
// It holds no logic.
package volumefx

import (
	"log/slog"

	"go.uber.org/fx"

	"nodekit.dev/node"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/wire"
	"nodekit.dev/volume"
)

// Module provides node.Mounter. A vendor's plugins are values of type
// node.Ordered[volume.Plugin] in the group "volumeplugins"; they come before
// the stock ones and so take their volumes.
func Module() fx.Option {
	return fx.Provide(fx.Annotate(mounter, fx.ParamTags("", "", "", `group:"volumeplugins"`)))
}

func mounter(cfg wire.Config, log *slog.Logger, b *podspec.Builder, vendor []node.Ordered[volume.Plugin]) (node.Mounter, error) {
	plugins, err := wire.VolumePlugins(vendor)
	if err != nil {
		return nil, err
	}
	m, err := volume.New(cfg.Volume, plugins, log.With("part", "volume"))
	if err != nil {
		return nil, err
	}
	return wire.Mounter(m, b), nil
}
