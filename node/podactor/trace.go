package podactor

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"nodekit.dev/internal/ring"
	"nodekit.dev/node/lifecycle"
)

// TraceVersion is the version of the JSON form of [Trace].
const TraceVersion = 1

// Trace is what an actor decided of late, as JSON for nodectl: each input
// replays through [lifecycle.Decide].
type Trace struct {
	Version   int          `json:"version"`
	UID       string       `json:"uid"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Entries   []TraceEntry `json:"entries"` // oldest first
}

// TraceEntry is one decision that did something or changed the status.
type TraceEntry struct {
	Input lifecycle.Input `json:"input"`
	Plan  lifecycle.Plan  `json:"plan"`
}

// trace keeps the entries packed: fifty pods' worth must fit an edge device.
type trace struct {
	packer *Packer
	mu     sync.Mutex
	ring   *ring.Ring[record]
}

// record is a packed entry. The wish is kept as it is, since its pod is shared
// with the actor anyway; the rest is compressed JSON.
type record struct {
	now    time.Time
	want   lifecycle.Want
	packed []byte
}

// rest is what a record packs.
type rest struct {
	Seen lifecycle.Seen
	Mem  lifecycle.Memory
	Busy map[lifecycle.Key]lifecycle.Action `json:",omitempty"`
	Plan lifecycle.Plan
}

func (t *trace) add(input lifecycle.Input, plan lifecycle.Plan, log *slog.Logger) {
	packed, err := t.packer.pack(rest{Seen: input.Seen, Mem: input.Mem, Busy: input.Busy, Plan: plan})
	if err != nil { // a type that does not marshal: a bug, but no reason to stop a pod
		log.Error("decision not traced", "err", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring.Add(record{now: input.Now, want: input.Want, packed: packed})
}

func (t *trace) read(want lifecycle.Want) (Trace, error) {
	t.mu.Lock()
	records := t.ring.Items()
	t.mu.Unlock()
	out := Trace{
		Version: TraceVersion, UID: want.UID, Namespace: want.Namespace, Name: want.Name,
		Entries: make([]TraceEntry, 0, len(records)),
	}
	for _, rec := range records {
		var r rest
		if err := t.packer.unpack(rec.packed, &r); err != nil {
			return Trace{}, fmt.Errorf("trace of pod %s: %w", want.UID, err)
		}
		out.Entries = append(out.Entries, TraceEntry{
			Input: lifecycle.Input{Now: rec.now, Want: rec.want, Seen: r.Seen, Mem: r.Mem, Busy: r.Busy},
			Plan:  r.Plan,
		})
	}
	return out, nil
}
