package probe

import (
	"container/heap"
	"slices"
	"time"
)

// timeline holds the probes that wait for their time, the next one first.
type timeline []*prober

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].due.Before(t[j].due) }
func (t timeline) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

// Push is for container/heap.
func (t *timeline) Push(x any) {
	p := x.(*prober)
	p.index = len(*t)
	*t = append(*t, p)
}

// Pop is for container/heap.
func (t *timeline) Pop() any {
	last := len(*t) - 1
	p := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return p
}

func (t *timeline) add(p *prober)    { heap.Push(t, p) }
func (t *timeline) remove(p *prober) { heap.Remove(t, p.index) }

// popDue takes the first whose time has come; nil: none.
func (t *timeline) popDue(now time.Time) *prober {
	if len(*t) == 0 || (*t)[0].due.After(now) {
		return nil
	}
	return heap.Pop(t).(*prober)
}

// queue holds the probes of one kind whose time has come, in order.
type queue struct {
	kind    Kind
	check   Check
	limit   int
	running int
	waiting []*prober
}

func (q *queue) remove(p *prober) {
	q.waiting = slices.DeleteFunc(q.waiting, func(other *prober) bool { return p == other })
}

// pick takes the oldest of all that may run now; nil: none.
func pick(queues []*queue) *prober {
	var from *queue
	for _, q := range queues {
		if len(q.waiting) == 0 || q.running >= q.limit {
			continue
		}
		if from == nil || q.waiting[0].turn < from.waiting[0].turn {
			from = q
		}
	}
	if from == nil {
		return nil
	}
	p := from.waiting[0]
	from.waiting[0] = nil
	from.waiting = from.waiting[1:]
	from.running++
	p.place = running
	return p
}
