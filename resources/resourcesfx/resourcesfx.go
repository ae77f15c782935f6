// Package resourcesfx provides node.Cgroups and node.Allocator over package
// resources in an fx graph. It holds no logic.
package resourcesfx

import (
	"log/slog"

	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/wire"
)

// Module provides node.Cgroups, which does nothing unless wire.Config.Host
// says that pods get cgroups from the agent, and node.Allocator, which admits
// every pod.
func Module() fx.Option { return fx.Provide(podCgroups, wire.AdmitAll) }

func podCgroups(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, log *slog.Logger) (node.Cgroups, error) {
	pods, runs, err := wire.Cgroups(cfg, log)
	for _, part := range runs {
		r.Run(lc, part.Name, part.Run)
	}
	return pods, err
}
