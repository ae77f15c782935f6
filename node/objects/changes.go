package objects

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Change says that an object which the pod of that UID refers to is not what
// it was: it changed, appeared or vanished, or could be read at last.
type Change struct{ UID types.UID }

// changes hands Changes out, one per pod however many there were since the
// last was taken. Use newChanges.
type changes struct {
	out  chan Change
	wake chan struct{} // holds one token while there is something to send

	mu      sync.Mutex
	waiting []types.UID
	among   map[types.UID]bool
}

func newChanges() *changes {
	return &changes{out: make(chan Change), wake: make(chan struct{}, 1), among: map[types.UID]bool{}}
}

// add never blocks.
func (c *changes) add(uids ...types.UID) {
	c.mu.Lock()
	for _, uid := range uids {
		if !c.among[uid] {
			c.among[uid] = true
			c.waiting = append(c.waiting, uid)
		}
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *changes) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.among, uid)
}

// next takes the oldest change that still counts.
func (c *changes) next() (types.UID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) > 0 {
		uid := c.waiting[0]
		c.waiting = c.waiting[1:]
		if c.among[uid] {
			delete(c.among, uid)
			return uid, true
		}
	}
	c.waiting = nil
	return "", false
}

// run sends until ctx ends.
func (c *changes) run(ctx context.Context) error {
	for {
		uid, ok := c.next()
		if !ok {
			select {
			case <-c.wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case c.out <- Change{UID: uid}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
