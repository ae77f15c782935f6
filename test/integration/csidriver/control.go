package csidriver

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// When is where in a call.
type When string

// A call is held before any of its work, or when only its answer is missing.
const (
	Before When = "before"
	After  When = "after"
)

// control is what the test wants to go wrong.
type control struct {
	mu    sync.Mutex
	holds []*Held
	fails []*failing
}

type failing struct {
	op     Op
	volume string
	code   codes.Code
	times  int
}

// Held is a call that gets no answer.
type Held struct {
	op      Op
	when    When
	volume  string
	reached chan struct{}
	release chan struct{}
	once    sync.Once
}

func newControl() *control { return &control{} }

// Hold keeps the next call of that kind for that volume (empty: any) from going
// on, until it is released or its caller goes away. One that is held [Before]
// then does nothing when its caller went away.
func (d *Driver) Hold(op Op, when When, volume string) *Held {
	h := &Held{op: op, when: when, volume: volume, reached: make(chan struct{}), release: make(chan struct{})}
	d.control.mu.Lock()
	defer d.control.mu.Unlock()
	d.control.holds = append(d.control.holds, h)
	return h
}

// Reached waits until the call is there.
func (h *Held) Reached(ctx context.Context) error {
	select {
	case <-h.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("csidriver: no %s came: %w", h.op, ctx.Err())
	}
}

// Release lets the call go on, also one that did not come yet.
func (h *Held) Release() { h.once.Do(func() { close(h.release) }) }

// Fail has the next calls of that kind for that volume (empty: any) fail,
// before any work.
func (d *Driver) Fail(op Op, volume string, code codes.Code, times int) {
	d.control.mu.Lock()
	defer d.control.mu.Unlock()
	d.control.fails = append(d.control.fails, &failing{op, volume, code, times})
}

// Heal takes back what [Driver.Fail] asked for.
func (d *Driver) Heal() {
	d.control.mu.Lock()
	defer d.control.mu.Unlock()
	d.control.fails = nil
}

// pause holds the call, if it is to be held there.
func (c *control) pause(ctx context.Context, call Call, when When) error {
	h := c.take(call, when)
	if h == nil {
		return nil
	}
	close(h.reached)
	select {
	case <-h.release:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (c *control) take(call Call, when When) *Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.holds, func(h *Held) bool {
		return h.op == call.Op && h.when == when && (h.volume == "" || h.volume == call.Volume)
	})
	if i < 0 {
		return nil
	}
	h := c.holds[i]
	c.holds = slices.Delete(c.holds, i, i+1)
	return h
}

// fail is the error that the call shall have.
func (c *control) fail(call Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.fails {
		if f.op == call.Op && f.times > 0 && (f.volume == "" || f.volume == call.Volume) {
			f.times--
			return status.Errorf(f.code, "the test wants %s to fail", call.Op)
		}
	}
	return nil
}
