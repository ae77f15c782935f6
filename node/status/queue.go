package status

import "slices"

// queue holds the items to look at: urgent ones first, each kind in order of
// arrival. It is for use under the writer's lock.
type queue struct{ urgent, other []*item }

// put adds an item, or moves it up.
func (q *queue) put(it *item, urgent bool) {
	if it.queued {
		if urgent && slices.Contains(q.other, it) {
			q.drop(it)
		} else {
			return
		}
	}
	it.queued = true
	if urgent {
		q.urgent = append(q.urgent, it)
	} else {
		q.other = append(q.other, it)
	}
}

// take removes the first item; nil: none.
func (q *queue) take() *item {
	list := &q.urgent
	if len(*list) == 0 {
		list = &q.other
	}
	if len(*list) == 0 {
		return nil
	}
	it := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	it.queued = false
	return it
}

func (q *queue) drop(it *item) {
	is := func(other *item) bool { return other == it }
	q.urgent, q.other = slices.DeleteFunc(q.urgent, is), slices.DeleteFunc(q.other, is)
	it.queued = false
}
