package stats

import (
	"container/heap"
	"time"
)

// queue has the volumes that wait, the one that is due first in front.
type queue struct{ heaped entries }

func (q *queue) put(e *entry) {
	if e.at >= 0 {
		heap.Fix(&q.heaped, e.at)
		return
	}
	heap.Push(&q.heaped, e)
}

func (q *queue) remove(e *entry) {
	if e.at >= 0 {
		heap.Remove(&q.heaped, e.at)
	}
}

// due takes the first one out if its time has come; else it says how long that
// is away. 0 without one: nothing waits.
func (q *queue) due(now time.Time) (*entry, time.Duration) {
	if len(q.heaped) == 0 {
		return nil, 0
	}
	first := q.heaped[0]
	if wait := first.next.Sub(now); wait > 0 {
		return nil, wait
	}
	q.remove(first)
	return first, 0
}

// entries is what container/heap wants.
type entries []*entry

func (s entries) Len() int           { return len(s) }
func (s entries) Less(i, j int) bool { return s[i].next.Before(s[j].next) }
func (s entries) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i, j
}

// Push is called by heap.
func (s *entries) Push(x any) {
	e := x.(*entry)
	e.at = len(*s)
	*s = append(*s, e)
}

// Pop is called by heap.
func (s *entries) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	e.at = -1
	return e
}
