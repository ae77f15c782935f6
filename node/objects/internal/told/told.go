// Package told hands out word of pods whose objects changed.
package told

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Changes hands out changes, one per pod however many there were since the
// last was taken. Use New.
type Changes[C any] struct {
	change func(types.UID) C
	out    chan C
	wake   chan struct{} // holds one token while there is something to send

	mu      sync.Mutex
	waiting []types.UID
	among   map[types.UID]bool
}

// New makes one; change makes what is handed out.
func New[C any](change func(types.UID) C) *Changes[C] {
	return &Changes[C]{change: change, out: make(chan C), wake: make(chan struct{}, 1), among: map[types.UID]bool{}}
}

// Out is where they come. It is never closed.
func (c *Changes[C]) Out() <-chan C { return c.out }

// Add never blocks.
func (c *Changes[C]) Add(uids ...types.UID) {
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

// Forget drops what waits of a pod.
func (c *Changes[C]) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.among, uid)
}

// next takes the oldest change that still counts.
func (c *Changes[C]) next() (types.UID, bool) {
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

// Run sends until ctx ends.
func (c *Changes[C]) Run(ctx context.Context) error {
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
		case c.out <- c.change(uid):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
