package runtimetest

import (
	"context"
	"time"

	"nodekit.dev/runtime"
)

// EventType is what happened.
type EventType string

// The event types of the CRI.
const (
	EventCreated EventType = "created"
	EventStarted EventType = "started"
	EventStopped EventType = "stopped"
	EventDeleted EventType = "deleted"
)

// Event is one container event. As with containerd, sandboxes have events too,
// with their own ID as the ID.
type Event struct {
	Type EventType
	ID   string // of the container or sandbox
	At   time.Time
	UID  string
	// Pod is what the pod looked like just after it happened, with the one
	// sandbox that it happened in. A sandbox that is gone is told by Pod.Sandboxes
	// being empty.
	Pod runtime.Pod
	// sandbox is kept for the CRI form of the event.
	sandbox runtime.SandboxConfig
}

// Subscribe returns the events from now on, until ctx ends or the runtime goes
// down; then the channel is closed. A reader who is too slow (Config.EventBuffer)
// loses the oldest ones.
func (w *World) Subscribe(ctx context.Context) <-chan Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := make(chan Event, w.cfg.EventBuffer)
	if w.down {
		close(events)
		return events
	}
	w.events.readers[events] = true
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events.drop(events)
	})
	return events
}

// Hints is the channel of which pods changed. It is the same on every call and
// has one reader. A hint without a UID stands for hints that were lost because
// nobody read them.
func (w *World) Hints() <-chan runtime.Hint {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events.hintsChannel()
}

// broadcaster hands events to all that listen. It is guarded by World.mu, so
// it is the only sender of its channels.
type broadcaster struct {
	buffer  int
	readers map[chan Event]bool
	hints   chan runtime.Hint // nil until somebody asks
}

func newBroadcaster(buffer int) broadcaster {
	return broadcaster{buffer: buffer, readers: map[chan Event]bool{}}
}

func (b *broadcaster) hintsChannel() chan runtime.Hint {
	if b.hints == nil {
		b.hints = make(chan runtime.Hint, b.buffer)
	}
	return b.hints
}

func (b *broadcaster) drop(events chan Event) {
	if b.readers[events] {
		delete(b.readers, events)
		close(events)
	}
}

func (b *broadcaster) dropAll() {
	for events := range b.readers {
		b.drop(events)
	}
}

// emitLocked tells all listeners. The pod's state is only put together when
// somebody listens.
func (w *World) emitLocked(t EventType, s *sandbox, id string) {
	if len(w.events.readers) == 0 && w.events.hints == nil {
		return
	}
	if w.faults.losesEvent(s.pod.uid) {
		return
	}
	w.events.hint(runtime.Hint{UID: s.pod.uid, At: time.Now()})
	if len(w.events.readers) == 0 {
		return
	}
	e := Event{Type: t, ID: id, At: time.Now(), UID: s.pod.uid, Pod: s.pod.viewOf(s), sandbox: s.cfg}
	for events := range w.events.readers {
		push(events, e)
	}
}

func (b *broadcaster) hint(h runtime.Hint) {
	if b.hints == nil {
		return
	}
	select {
	case b.hints <- h:
	default: // full: make room for the hint that stands for all
		push(b.hints, runtime.Hint{})
	}
}

// push sends without blocking; the oldest value makes room. The caller is the
// only sender, so one receive is enough.
func push[T any](ch chan T, v T) {
	select {
	case ch <- v:
		return
	default:
	}
	select {
	case <-ch:
	default:
	}
	ch <- v
}
