package app

import (
	"log/slog"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/server"
	"nodekit.dev/node/source"
)

// keptEvents is how many events are kept for nodectl.
const keptEvents = 256

// eventLog writes the events of pods to the log and keeps the newest ones, as
// there is no API server to take them.
type eventLog struct {
	log    *slog.Logger
	record *server.Events
}

// PodEvent implements node.EventSink.
func (e eventLog) PodEvent(ev node.PodEvent) {
	e.record.PodEvent(ev)
	write := e.log.Info
	if ev.Type == lifecycle.EventWarning {
		write = e.log.Warn
	}
	write("Event occurred", "pod", ev.Namespace+"/"+ev.Name, "uid", ev.UID,
		"type", string(ev.Type), "reason", ev.Reason, "message", ev.Message, "container", ev.Container)
}

// problem keeps what is wrong with a manifest; its source has logged it.
func (e eventLog) problem(p source.Problem) {
	ev := server.Event{Time: p.At, Type: lifecycle.EventWarning, Reason: string(p.Reason), Message: p.Message, Location: p.Location}
	if p.Pod != nil {
		ev.UID, ev.Namespace, ev.Name = string(p.Pod.UID), p.Pod.Namespace, p.Pod.Name
	}
	e.record.Add(ev)
}
