package observe

import (
	"context"
	"sync"

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
	pending map[string]bool
}

func newHintQueue() *hintQueue {
	return &hintQueue{
		out:     make(chan runtime.Hint),
		wake:    make(chan struct{}, 1),
		pending: map[string]bool{},
	}
}

// add asks for a look at one pod; "" asks for a look at all of them. The
// latter does not replace the former: the reader looks at all pods that it
// knows of, and a hint may be about one that it does not.
func (q *hintQueue) add(uid string) {
	q.mu.Lock()
	switch {
	case uid == "":
		q.all = true
	case q.pending[uid]:
	case len(q.order) >= maxPending:
		q.all, q.order, q.pending = true, nil, map[string]bool{}
	default:
		q.pending[uid] = true
		q.order = append(q.order, uid)
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
	delete(q.pending, uid)
	return runtime.Hint{UID: uid}, true
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
