// Package gate lets a bounded number of callers through at a time, in an order
// that finishes what has begun before it begins more.
//
// A runtime on a small machine starts containers no faster when it is asked
// for fifty at once: they all end up late together. Handed over a few at a
// time, oldest first, half of the pods run after half of the time.
package gate

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Gate is safe for concurrent use. Use New.
type Gate struct {
	patience time.Duration

	share int // places that callers of one order may hold

	mu      sync.Mutex
	free    int
	inside  map[int64]int // places held, by order
	arrived uint64
	waiting queue
}

// New makes a gate for width callers at a time (at least 1). A caller that
// stays longer than patience no longer counts, so that one that hangs can not
// shut the gate for all; 0 means unlimited patience. Callers of one order hold
// at most half of the places, so that a pod of a hundred containers does not
// keep its neighbours waiting until the last of them has started.
func New(width int, patience time.Duration) *Gate {
	width = max(1, width)
	return &Gate{free: width, share: (width + 1) / 2, patience: patience, inside: map[int64]int{}}
}

// Enter waits for its turn: those that have begun come before those that have
// not, then the lower order, then the earlier arrival. The caller calls leave
// when done; leaving twice is fine. It fails only when ctx ends first.
func (g *Gate) Enter(ctx context.Context, begun bool, order int64) (leave func(), err error) {
	w := g.queue(begun, order)
	select {
	case <-w.turn:
		return g.lend(order), nil
	case <-ctx.Done():
		g.withdraw(w)
		return nil, ctx.Err()
	}
}

func (g *Gate) queue(begun bool, order int64) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	w := &waiter{begun: begun, order: order, arrived: g.arrived, turn: make(chan struct{})}
	heap.Push(&g.waiting, w)
	g.admit()
	return w
}

// admit gives free places to those first in line whose order holds less than
// its share. The lock is held.
func (g *Gate) admit() {
	var passedOver []*waiter
	for g.free > 0 && len(g.waiting) > 0 {
		w := heap.Pop(&g.waiting).(*waiter) //nolint:forcetypeassert // the queue holds nothing else
		if g.inside[w.order] >= g.share {
			passedOver = append(passedOver, w)
			continue
		}
		g.free--
		g.inside[w.order]++
		close(w.turn)
	}
	for _, w := range passedOver {
		heap.Push(&g.waiting, w)
	}
}

// giveBack frees a place of that order. The lock is held.
func (g *Gate) giveBack(order int64) {
	g.free++
	if g.inside[order]--; g.inside[order] == 0 {
		delete(g.inside, order)
	}
	g.admit()
}

// withdraw takes a waiter out of the line, or gives back the place that it was
// given at the same moment.
func (g *Gate) withdraw(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.index >= 0 {
		heap.Remove(&g.waiting, w.index)
		return
	}
	g.giveBack(w.order)
}

// lend returns the function that gives one place back, once.
func (g *Gate) lend(order int64) func() {
	giveBack := sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.giveBack(order)
	})
	if g.patience <= 0 {
		return giveBack
	}
	timer := time.AfterFunc(g.patience, giveBack)
	return func() {
		timer.Stop()
		giveBack()
	}
}

// waiter is one caller in line.
type waiter struct {
	begun   bool
	order   int64
	arrived uint64
	turn    chan struct{}
	index   int // in the queue; -1 once taken out
}

func (w *waiter) before(o *waiter) bool {
	switch {
	case w.begun != o.begun:
		return w.begun
	case w.order != o.order:
		return w.order < o.order
	}
	return w.arrived < o.arrived
}

// queue is a heap of waiters, first in line on top.
type queue []*waiter

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	w := x.(*waiter) //nolint:forcetypeassert // the queue holds nothing else
	w.index = len(*q)
	*q = append(*q, w)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	w.index = -1
	return w
}
