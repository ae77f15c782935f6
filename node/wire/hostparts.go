package wire

import (
	"nodekit.dev/internal/command"
	"nodekit.dev/node/iptables"
)

// HostParts are what runs for the host itself, as Config.Host asks.
func HostParts(cfg Config) ([]Part, error) {
	if !cfg.Host.IPTables {
		return nil, nil
	}
	keeper, err := iptables.New(iptables.Default(), command.Runner{}, cfg.Log.With("part", "iptables"))
	if err != nil {
		return nil, err
	}
	return []Part{{"iptables", keeper.Run}}, nil
}
