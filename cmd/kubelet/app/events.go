package app

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/source"
)

// keptEvents is how many events are kept for nodectl.
const keptEvents = 256

// Event is one line of GET /debug/events.
type Event struct {
	Time      time.Time           `json:"time"`
	Type      lifecycle.EventType `json:"type"`
	Reason    string              `json:"reason"`
	Message   string              `json:"message"`
	UID       string              `json:"uid,omitempty"`
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name,omitempty"`
	Container string              `json:"container,omitempty"`
	// Location is the manifest that the event is about, where it is not a pod.
	Location string `json:"location,omitempty"`
}

// events logs the events of pods and keeps the newest ones with the problems
// of manifests, as there is no API server to take them.
type events struct {
	log *slog.Logger

	mu   sync.Mutex
	kept []Event // oldest first
}

// PodEvent implements node.EventSink.
func (e *events) PodEvent(ev node.PodEvent) {
	e.keep(Event{
		Type: ev.Type, Reason: ev.Reason, Message: ev.Message,
		UID: ev.UID, Namespace: ev.Namespace, Name: ev.Name, Container: ev.Container,
	})
	write := e.log.Info
	if ev.Type == lifecycle.EventWarning {
		write = e.log.Warn
	}
	write("Event occurred", "pod", ev.Namespace+"/"+ev.Name, "uid", ev.UID,
		"type", string(ev.Type), "reason", ev.Reason, "message", ev.Message, "container", ev.Container)
}

// problem keeps what is wrong with a manifest; its source has logged it.
func (e *events) problem(p source.Problem) {
	ev := Event{Type: lifecycle.EventWarning, Reason: string(p.Reason), Message: p.Message, Location: p.Location}
	if p.Pod != nil {
		ev.UID, ev.Namespace, ev.Name = string(p.Pod.UID), p.Pod.Namespace, p.Pod.Name
	}
	e.keep(ev)
}

func (e *events) keep(ev Event) {
	ev.Time = time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.kept) == keptEvents {
		e.kept = slices.Delete(e.kept, 0, 1)
	}
	e.kept = append(e.kept, ev)
}

// list is a copy, oldest first.
func (e *events) list() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Event{}, e.kept...)
}
