package observe

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"time"

	"nodekit.dev/runtime"
)

// relister is the state of the relist. Its channels may be used by anybody,
// the rest by the relist's own goroutine.
type relister struct {
	soon    chan struct{} // list again now
	stirred chan struct{} // something is going on: list often for a while
	prints  map[string]uint64
	failing bool
}

func newRelister() *relister {
	return &relister{soon: make(chan struct{}, 1), stirred: make(chan struct{}, 1), prints: map[string]uint64{}}
}

// now asks for a list at once.
func (r *relister) now() { poke(r.soon) }

// stir asks for short intervals while events do not come.
func (r *relister) stir() { poke(r.stirred) }

// runRelist lists all pods over and over and hints at those that changed.
func (o *Observer) runRelist(ctx context.Context) error {
	wait := o.cfg.RelistMin
	for {
		changed := o.relistOnce(ctx)
		wait = nextRelist(o.cfg, wait, changed, o.streaming.Load())
		var err error
		if wait, err = o.restRelist(ctx, wait); err != nil {
			return err
		}
	}
}

// restRelist waits for the next list and gives the interval to go on from.
func (o *Observer) restRelist(ctx context.Context, wait time.Duration) (time.Duration, error) {
	began := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return wait, nil
		case <-o.relist.soon:
			wait = o.cfg.RelistMin
			timer.Reset(max(0, wait/10-time.Since(began))) // a burst of wishes is one list
		case <-o.relist.stirred:
			if o.streaming.Load() || wait <= o.cfg.RelistMin {
				continue
			}
			wait = o.cfg.RelistMin
			timer.Reset(max(0, wait-time.Since(began)))
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// nextRelist says how long to wait after a list. The interval starts short,
// also with events, because those between the list and the opening of the
// stream are lost; it grows while it finds nothing new that it would be
// needed for.
func nextRelist(cfg Config, last time.Duration, changed, streaming bool) time.Duration {
	if streaming {
		return min(2*last, cfg.RelistWithEvents)
	}
	if changed {
		return cfg.RelistMin
	}
	return min(last+last/4, cfg.RelistMax)
}

// relistOnce lists once and says whether anything changed. A failure is
// logged when it begins and when it ends; what it means for the node is told
// by the runtime's health.
func (o *Observer) relistOnce(ctx context.Context) bool {
	start := time.Now()
	pods, err := o.List(ctx)
	if err != nil {
		if ctx.Err() == nil && !o.relist.failing {
			o.relist.failing = true
			o.cfg.Log.Warn("cannot list the pods of the runtime", "err", err)
		}
		o.cfg.Trace.Listed(time.Since(start), 0, 0, err)
		return false
	}
	if o.relist.failing {
		o.relist.failing = false
		o.cfg.Log.Info("the pods of the runtime can be listed again", "pods", len(pods))
	}
	changed := o.relist.compare(pods)
	for _, uid := range changed {
		o.hints.add(runtime.Hint{UID: uid, At: time.Now()})
	}
	o.cfg.Trace.Listed(time.Since(start), len(pods), len(changed), nil)
	return len(changed) > 0
}

// compare gives the UIDs of the pods that are new, changed or gone since the
// last list.
func (r *relister) compare(pods []runtime.Pod) []string {
	var changed []string
	now := make(map[string]uint64, len(pods))
	for _, p := range pods {
		now[p.UID] = fingerprint(p)
		if before, ok := r.prints[p.UID]; !ok || before != now[p.UID] {
			changed = append(changed, p.UID)
		}
	}
	for uid := range r.prints {
		if _, ok := now[uid]; !ok {
			changed = append(changed, uid)
		}
	}
	r.prints = now
	return changed
}

// fingerprint is the same for two lists of a pod between which nothing
// happened that a list tells of.
func fingerprint(p runtime.Pod) uint64 {
	h := fnv.New64a()
	field := func(s string) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:]) // a hash takes all that it is given
		h.Write([]byte(s))
	}
	for _, s := range p.Sandboxes {
		field(s.ID)
		if s.Ready {
			field("ready")
		} else {
			field("")
		}
	}
	field("/")
	for _, c := range p.Containers {
		field(c.ID)
		field(string(c.State))
	}
	return h.Sum64()
}
