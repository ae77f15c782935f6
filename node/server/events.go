package server

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// Event is one event as /debug/events shows it.
type Event struct {
	Time      time.Time           `json:"time"`
	Type      lifecycle.EventType `json:"type"`
	Reason    string              `json:"reason"`
	Message   string              `json:"message"`
	UID       string              `json:"uid,omitempty"`
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name,omitempty"`
	Container string              `json:"container,omitempty"`
	// Location is the manifest that the event is about, where there is one.
	Location string `json:"location,omitempty"`
}

// Events keeps the newest events of an agent that has no API server to take
// them. It is a node.EventSink; [Events.Route] shows what it keeps. Safe for
// concurrent use.
type Events struct {
	size int

	mu   sync.Mutex
	kept []Event // oldest first
}

// NewEvents makes a record of the newest size events.
func NewEvents(size int) *Events { return &Events{size: max(size, 1)} }

// PodEvent implements node.EventSink.
func (e *Events) PodEvent(ev node.PodEvent) {
	e.Add(Event{
		Time: time.Now(), Type: ev.Type, Reason: ev.Reason, Message: ev.Message,
		UID: ev.UID, Namespace: ev.Namespace, Name: ev.Name, Container: ev.Container,
	})
}

// Add keeps an event that is not a pod's, or not only.
func (e *Events) Add(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.kept) == e.size {
		e.kept = slices.Delete(e.kept, 0, 1)
	}
	e.kept = append(e.kept, ev)
}

// List is a copy, oldest first.
func (e *Events) List() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Event{}, e.kept...)
}

// Route is GET /debug/events.
func (e *Events) Route() Route {
	return Route{Pattern: "GET /debug/events", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, e.List())
	})}
}
