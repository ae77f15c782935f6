package sim

import (
	"container/heap"
	"time"
)

// timeline is virtual time: what is to happen, in order. Events of one moment
// happen in the order in which they were planned.
type timeline struct {
	now   time.Time
	queue eventQueue
	seq   int
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

// after plans something.
func (t *timeline) after(d time.Duration, do func()) { t.at(t.now.Add(d), do) }

func (t *timeline) at(at time.Time, do func()) {
	if at.Before(t.now) {
		at = t.now
	}
	t.seq++
	heap.Push(&t.queue, event{at, t.seq, do})
}

// until lets happen all that is due up to that moment.
func (t *timeline) until(end time.Time) {
	for len(t.queue) > 0 && !t.queue[0].at.After(end) {
		e := heap.Pop(&t.queue).(event)
		t.now = e.at
		e.do()
	}
	t.now = end
}

// eventQueue is a heap by time, then by order of planning.
type eventQueue []event

func (q eventQueue) Len() int      { return len(q) }
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q eventQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].seq < q[j].seq
}
func (q *eventQueue) Push(e any) { *q = append(*q, e.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
