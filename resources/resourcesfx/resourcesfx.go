// Package resourcesfx provides node.Cgroups and node.Allocator over package
// resources in an fx graph. It holds no logic.
package resourcesfx

import (
	"log/slog"

	"go.uber.org/fx"

	"nodekit.dev/node"
	"nodekit.dev/node/wire"
	"nodekit.dev/resources/cgroups"
)

// Module provides node.Cgroups, which does nothing unless wire.Config.Host
// says that pods get cgroups from the agent, and node.Allocator, which admits
// every pod.
func Module() fx.Option { return fx.Provide(podCgroups, wire.AdmitAll) }

func podCgroups(cfg wire.Config, log *slog.Logger) (node.Cgroups, error) {
	if !cfg.Host.PodCgroups {
		return wire.NoCgroups(), nil
	}
	return cgroups.New(cfg.Cgroups, log.With("part", "cgroups"))
}
