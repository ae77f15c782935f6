package podactor

import (
	"sync"
	"time"

	"nodekit.dev/node/lifecycle"
)

// inbox gathers news until the actor takes all of it at once. Senders never
// block, and a thousand pokes are one.
type inbox struct {
	mu   sync.Mutex
	news news
	wake chan struct{} // holds one token while there is news
}

// news is what came in since the last take.
type news struct {
	want     *lifecycle.Want
	hinted   time.Time // of the latest hint; zero: none
	network  *bool
	news     time.Time // of what the pod may wait for; zero: none
	probes   map[string]lifecycle.Probe
	outcomes []outcome
	looks    []lookDone
	events   []lifecycle.Event
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) put(add func(*news)) {
	b.mu.Lock()
	add(&b.news)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // the token is there already
	}
}

func (b *inbox) take() news {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.news
	b.news = news{}
	return n
}
