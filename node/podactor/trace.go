package podactor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	// Plan is without Mem, which the Input of the next entry tells well enough.
	Plan lifecycle.Plan `json:"plan"`
}

// Replay decides again. Same says whether the plan came out as it was recorded.
func (e TraceEntry) Replay(decide func(lifecycle.Input) lifecycle.Plan) (plan lifecycle.Plan, same bool, err error) {
	plan = decide(e.Input)
	bare := plan
	bare.Mem = lifecycle.Memory{}
	now, err := json.Marshal(bare)
	if err != nil {
		return plan, false, err
	}
	then, err := json.Marshal(e.Plan)
	return plan, bytes.Equal(now, then), err
}

// traceIdle is how long a pod must be quiet before its new entries are packed,
// which is work that no start should wait for.
const traceIdle = 2 * time.Second

// trace keeps the newest entries, at least size and less than twice as many.
// Entries of pods that are quiet are packed: fifty pods' worth must fit an
// edge device.
type trace struct {
	packer *Packer
	size   int

	mu     sync.Mutex
	fresh  []TraceEntry
	packed []block // oldest first
}

// block is some entries in a row. Specs are not packed: the newest one is
// shared with the actor anyway.
type block struct {
	pods    []*corev1.Pod // one for each entry
	entries []byte        // JSON of []TraceEntry without specs, compressed
}

// add takes in one decision. The input is a view of the actor's state, so what
// the actor changes in place is copied.
func (t *trace) add(input lifecycle.Input, plan lifecycle.Plan, log *slog.Logger) {
	if t.size == 0 {
		return
	}
	seen := &input.Seen
	seen.Mounted, seen.Far = maps.Clone(seen.Mounted), maps.Clone(seen.Far)
	seen.Images, seen.Probes = maps.Clone(seen.Images), maps.Clone(seen.Probes)
	seen.PostStart, seen.Failed = maps.Clone(seen.PostStart), maps.Clone(seen.Failed)
	plan.Mem = lifecycle.Memory{}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh = append(t.fresh, TraceEntry{Input: input, Plan: plan})
	if len(t.fresh) >= t.size {
		t.packLocked(log)
	}
}

// pack packs what is fresh.
func (t *trace) pack(log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.packLocked(log)
}

func (t *trace) packLocked(log *slog.Logger) {
	if len(t.fresh) == 0 {
		return
	}
	pods := make([]*corev1.Pod, len(t.fresh))
	for i := range t.fresh {
		pods[i], t.fresh[i].Input.Want.Pod = t.fresh[i].Input.Want.Pod, nil
	}
	entries, err := t.packer.pack(t.fresh)
	t.fresh = nil
	if err != nil { // a type that does not marshal: a bug, but no reason to stop a pod
		log.Error("decisions not traced", "err", err)
		return
	}
	t.packed = append(t.packed, block{pods: pods, entries: entries})
	t.forget()
}

// forget drops the oldest blocks that are not needed to keep size entries.
func (t *trace) forget() {
	count := 0
	for i := len(t.packed) - 1; i >= 0; i-- {
		if count >= t.size {
			t.packed = append([]block(nil), t.packed[i+1:]...)
			return
		}
		count += len(t.packed[i].pods)
	}
}

func (t *trace) read(want lifecycle.Want) (Trace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Trace{Version: TraceVersion, UID: want.UID, Namespace: want.Namespace, Name: want.Name}
	for _, b := range t.packed {
		var entries []TraceEntry
		if err := t.packer.unpack(b.entries, &entries); err != nil {
			return Trace{}, fmt.Errorf("trace of pod %s: %w", want.UID, err)
		}
		for i := range entries {
			entries[i].Input.Want.Pod = b.pods[i]
		}
		out.Entries = append(out.Entries, entries...)
	}
	out.Entries = append(out.Entries, t.fresh...)
	return out, nil
}
