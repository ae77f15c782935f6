package server

import (
	"context"
	"net/http"
	"sync"
)

// callCount knows how many calls are under way. A server that shuts down does
// not wait for those that took their connection over, as exec does; whoever
// stops the server does, by this.
type callCount struct {
	mu    sync.Mutex
	calls int
	idle  chan struct{} // closed when the last call ends; nil: nobody waits
}

func (c *callCount) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.add(1)
		defer c.add(-1)
		next.ServeHTTP(w, r)
	})
}

func (c *callCount) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls += n
	if c.calls == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// wait returns when no call is under way, or ctx ends.
func (c *callCount) wait(ctx context.Context) {
	c.mu.Lock()
	if c.calls == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
