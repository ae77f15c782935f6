package main

import (
	"log/slog"
	"strings"

	"nodekit.dev/node/nodefx"
	"nodekit.dev/probe"
)

// probeBodies writes down what probes of the vendor's own pods found.
type probeBodies struct{ log *slog.Logger }

func ownProbes() nodefx.Option {
	return nodefx.AddProbeObserver(func(log *slog.Logger) probeBodies { return probeBodies{log: log} })
}

// ProbeChecked implements wire.ProbeObserver.
func (p probeBodies) ProbeChecked(c probe.Checked) {
	if strings.HasPrefix(c.Target.Pod, "web-") && c.Changed {
		p.log.Info("own probe", "pod", c.Target.Pod, "type", c.Target.Type, "result", c.Counted, "body", c.Outcome.Output)
	}
}
