package wire

import (
	"log/slog"

	"nodekit.dev/node"
	"nodekit.dev/resources"
	"nodekit.dev/resources/cgroups"
	"nodekit.dev/resources/cgroups/systemd"
)

// Cgroups are the cgroups of pods, where the agent makes them, with what has to
// run beside them.
func Cgroups(cfg Config, log *slog.Logger) (node.Cgroups, []Part, error) {
	if !cfg.Host.PodCgroups {
		return NoCgroups(), nil, nil
	}
	log = log.With("part", "cgroups")
	if cfg.Cgroups.Names.Driver != resources.Systemd {
		m, err := cgroups.New(cfg.Cgroups, nil, log)
		return m, nil, err
	}
	slices := systemd.New(systemd.Default(), log)
	m, err := cgroups.New(cfg.Cgroups, slices, log)
	return m, []Part{{"systemd", slices.Run}}, err
}
