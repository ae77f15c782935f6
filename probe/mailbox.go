package probe

import (
	"context"
	"slices"
	"sync"
)

// containerKey names a container, whichever run of it.
type containerKey struct{ uid, name string }

// mailbox keeps the newest state of each container until the reader takes it.
// Putting never blocks.
type mailbox struct {
	out  chan State
	wake chan struct{}

	mu     sync.Mutex
	order  []containerKey
	latest map[containerKey]*State
}

func newMailbox() *mailbox {
	return &mailbox{out: make(chan State), wake: make(chan struct{}, 1), latest: map[containerKey]*State{}}
}

// put replaces what the reader has not taken yet.
func (b *mailbox) put(key containerKey, s State) {
	b.mu.Lock()
	if _, waits := b.latest[key]; !waits {
		b.order = append(b.order, key)
	}
	b.latest[key] = &s
	b.mu.Unlock()
	poke(b.wake)
}

// drop removes what the reader has not taken yet.
func (b *mailbox) drop(key containerKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.latest[key] != nil {
		b.remove(key)
		poke(b.wake)
	}
}

func (b *mailbox) remove(key containerKey) {
	delete(b.latest, key)
	b.order = slices.DeleteFunc(b.order, func(k containerKey) bool { return k == key })
}

// oldest is what the reader is given next; nil for nothing.
func (b *mailbox) oldest() (containerKey, *State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.order) == 0 {
		return containerKey{}, nil
	}
	return b.order[0], b.latest[b.order[0]]
}

// taken removes what the reader has, unless there is something newer.
func (b *mailbox) taken(key containerKey, s *State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.latest[key] != s {
		return
	}
	if b.order[0] == key { // the rule
		delete(b.latest, key)
		b.order = b.order[1:]
		return
	}
	b.remove(key)
}

// run hands the states to the reader, whose channel ends with it.
func (b *mailbox) run(ctx context.Context) error {
	defer close(b.out)
	for {
		key, s := b.oldest()
		out, value := b.out, State{}
		if s != nil {
			value = *s
		} else {
			out = nil
		}
		select {
		case out <- value:
			b.taken(key, s)
		case <-b.wake:
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
