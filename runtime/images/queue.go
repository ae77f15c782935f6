package images

import (
	"context"
	"sync"
	"time"
)

// queue hands out a fixed number of slots, to the oldest ticket first.
type queue struct {
	mu      sync.Mutex
	free    int
	limited bool
	seq     uint64
	waiting map[*ticket]struct{}
}

// ticket is one place in the queue. It is used for one acquire.
type ticket struct {
	age     time.Time
	seq     uint64
	granted chan struct{}
}

// newQueue makes a queue of that many slots; 0 or less: no limit.
func newQueue(slots int) *queue {
	return &queue{free: slots, limited: slots > 0, waiting: map[*ticket]struct{}{}}
}

// ticket draws a place for something that has been wanted since age.
func (q *queue) ticket(age time.Time) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	return &ticket{age: age, seq: q.seq, granted: make(chan struct{})}
}

// older moves a ticket forward when somebody older wants the same thing.
func (q *queue) older(t *ticket, age time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if age.Before(t.age) {
		t.age = age
	}
}

// acquire waits for a slot; after nil the caller owes one release.
func (q *queue) acquire(ctx context.Context, t *ticket) error {
	if !q.limited {
		return ctx.Err()
	}
	q.mu.Lock()
	q.waiting[t] = struct{}{}
	q.grant()
	q.mu.Unlock()
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, still := q.waiting[t]; !still { // granted at the same moment
		q.free++
		q.grant()
	}
	delete(q.waiting, t)
	return ctx.Err()
}

func (q *queue) release() {
	if !q.limited {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	q.grant()
}

// grant gives free slots to the oldest tickets. Called under the lock.
func (q *queue) grant() {
	for q.free > 0 && len(q.waiting) > 0 {
		var first *ticket
		for t := range q.waiting {
			if first == nil || t.before(first) {
				first = t
			}
		}
		delete(q.waiting, first)
		q.free--
		close(first.granted)
	}
}

func (t *ticket) before(u *ticket) bool {
	if !t.age.Equal(u.age) {
		return t.age.Before(u.age)
	}
	return t.seq < u.seq
}
