// Package probefx provides a *probe.Manager in an fx graph. It holds no logic.
package probefx

import (
	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/probe"
)

// Module provides *probe.Manager, which runs from start to stop. It asks for a
// probe.Config and a *fxrun.Runner.
func Module() fx.Option { return fx.Provide(manager) }

func manager(lc fx.Lifecycle, r *fxrun.Runner, cfg probe.Config) (*probe.Manager, error) {
	m, err := probe.New(cfg)
	if err != nil {
		return nil, err
	}
	r.Run(lc, "probes", m.Run)
	return m, nil
}
