package events

import "container/list"

// recent is a map that forgets what was not used for the longest time once it
// holds most entries. It is for one goroutine, or under its owner's lock.
type recent[V any] struct {
	most    int
	order   *list.List // of entry, the newest first
	entries map[string]*list.Element
}

type entry[V any] struct {
	key   string
	value V
}

func newRecent[V any](most int) *recent[V] {
	return &recent[V]{most: most, order: list.New(), entries: map[string]*list.Element{}}
}

// get returns the value of key, made by fresh when there is none.
func (r *recent[V]) get(key string, fresh func() V) V {
	if e, ok := r.entries[key]; ok {
		r.order.MoveToFront(e)
		return e.Value.(entry[V]).value
	}
	value := fresh()
	r.entries[key] = r.order.PushFront(entry[V]{key, value})
	if len(r.entries) > r.most {
		last := r.order.Back()
		delete(r.entries, last.Value.(entry[V]).key)
		r.order.Remove(last)
	}
	return value
}
