package observe

import (
	"context"
	"sync"
	"time"

	"nodekit.dev/runtime"
)

// maxPending bounds the pods that wait for the reader; more than that become
// one hint to look at all.
const maxPending = 4096

// hintQueue holds the pods to look at until the reader takes them. A pod is in
// it once, and adding never blocks.
type hintQueue struct {
	out  chan runtime.Hint
	wake chan struct{}

	mu      sync.Mutex
	all     bool
	order   []string
	pending map[string]time.Time // when the newest happened; zero: not known
}

func newHintQueue() *hintQueue {
	return &hintQueue{
		out:     make(chan runtime.Hint),
		wake:    make(chan struct{}, 1),
		pending: map[string]time.Time{},
	}
}

// add asks for a look at one pod; no UID asks for a look at all of them. The
// latter does not replace the former: the reader looks at all pods that it
// knows of, and a hint may be about one that it does not.
func (q *hintQueue) add(hint runtime.Hint) {
	q.mu.Lock()
	before, waits := q.pending[hint.UID]
	switch {
	case hint.UID == "":
		q.all = true
	case waits:
		q.pending[hint.UID] = later(before, hint.At)
	case len(q.order) >= maxPending:
		q.all, q.order, q.pending = true, nil, map[string]time.Time{}
	default:
		q.pending[hint.UID] = hint.At
		q.order = append(q.order, hint.UID)
	}
	q.mu.Unlock()
	poke(q.wake)
}

// take gives the oldest hint; a look at all pods comes first.
func (q *hintQueue) take() (runtime.Hint, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all {
		q.all = false
		return runtime.Hint{}, true
	}
	if len(q.order) == 0 {
		return runtime.Hint{}, false
	}
	uid := q.order[0]
	q.order = q.order[1:]
	at := q.pending[uid]
	delete(q.pending, uid)
	return runtime.Hint{UID: uid, At: at}, true
}

// later is the later of two times; one that is not known may be any.
func later(a, b time.Time) time.Time {
	switch {
	case a.IsZero() || b.IsZero():
		return time.Time{}
	case a.After(b):
		return a
	}
	return b
}

// run hands the hints to the reader.
func (q *hintQueue) run(ctx context.Context) error {
	for {
		hint, ok := q.take()
		if !ok {
			select {
			case <-q.wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case q.out <- hint:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// poke wakes the reader of a channel of size 1, if it is not awake already.
func poke(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
