package main

import (
	"log/slog"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
)

// fleet sends the events of pods to the vendor's fleet management; here, that
// is the log.
type fleet struct{ log *slog.Logger }

func fleetEvents() nodefx.Option {
	return nodefx.AddEventSink(func(log *slog.Logger) fleet { return fleet{log} })
}

// PodEvent implements node.EventSink.
func (f fleet) PodEvent(e node.PodEvent) {
	f.log.Info("fleet event", "pod", e.Name, "reason", e.Reason)
}
