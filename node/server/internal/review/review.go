// Package review is what reviews of tokens and of access have in common: they
// ask the API server, try again when it is worth it, and keep answers.
package review

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"nodekit.dev/internal/tasks"
)

// The stock kubelet's tries: five, half a second apart at first, each wait half
// as long again, plus up to a fifth.
const (
	tries  = 5
	first  = 500 * time.Millisecond
	factor = 1.5
	jitter = 0.2
)

// Ask calls until it works, fails for good, or ctx ends.
func Ask[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	pause := first
	for try := 1; ; try++ {
		got, err := call(ctx)
		if err == nil || try == tries || !worthAnother(err) {
			return got, err
		}
		timer := time.NewTimer(pause + time.Duration(rand.Float64()*jitter*float64(pause)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return got, err // what went wrong says more than that time was up
		case <-timer.C:
		}
		pause = time.Duration(float64(pause) * factor)
	}
}

// worthAnother says that the same call may work in a moment.
func worthAnother(err error) bool {
	_, told := apierrors.SuggestsClientDelay(err)
	return told || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// Cache keeps answers for as long as they say, and asks once for all who want
// the same answer at the same time. Safe for concurrent use; use NewCache.
type Cache[T any] struct {
	max int

	mu     sync.Mutex
	kept   map[string]kept[T]
	asking map[string]*question[T]
}

type kept[T any] struct {
	value T
	until time.Time
}

// question is one that somebody asks now. The fields are set before done is
// closed.
type question[T any] struct {
	done   chan struct{}
	value  T
	err    error
	gaveUp bool // whoever asked went away before there was an answer
}

// NewCache keeps up to max answers.
func NewCache[T any](max int) *Cache[T] {
	return &Cache[T]{max: max, kept: map[string]kept[T]{}, asking: map[string]*question[T]{}}
}

// Get gives the kept answer, waits for who asks already, or asks. ask tells for
// how long its answer may be kept (0: not at all); errors are never kept. Whoever
// waits for somebody that gave up asks in his place.
func (c *Cache[T]) Get(ctx context.Context, key string, ask func(context.Context) (T, time.Duration, error)) (T, error) {
	var none T
	for {
		k, q, mine := c.look(key)
		switch {
		case q == nil:
			return k, nil
		case mine:
			c.answer(ctx, key, q, ask)
			return q.value, q.err
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return none, ctx.Err()
		}
		if !q.gaveUp || ctx.Err() != nil {
			return q.value, q.err
		}
	}
}

// look gives what is kept (no question), or the question, which is the
// caller's to ask where nobody asks it yet.
func (c *Cache[T]) look(key string) (value T, q *question[T], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.kept[key]; ok && time.Now().Before(k.until) {
		return k.value, nil, false
	}
	if q := c.asking[key]; q != nil {
		return value, q, false
	}
	q = &question[T]{done: make(chan struct{})}
	c.asking[key] = q
	return value, q, true
}

// answer asks, and tells all who wait.
func (c *Cache[T]) answer(ctx context.Context, key string, q *question[T], ask func(context.Context) (T, time.Duration, error)) {
	var ttl time.Duration
	q.err = tasks.Contain("review", func() (err error) {
		q.value, ttl, err = ask(ctx)
		return err
	})
	q.gaveUp = q.err != nil && ctx.Err() != nil // not a limit of ask's own, which the next would meet too
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asking, key)
	if q.err == nil && ttl > 0 {
		c.keep(key, kept[T]{q.value, time.Now().Add(ttl)})
	}
	close(q.done)
}

// keep makes room first: by what is out of date, else by whatever there is.
func (c *Cache[T]) keep(key string, k kept[T]) {
	if len(c.kept) >= c.max {
		now := time.Now()
		for old, o := range c.kept {
			if !now.Before(o.until) {
				delete(c.kept, old)
			}
		}
	}
	for old := range c.kept {
		if len(c.kept) < c.max {
			break
		}
		delete(c.kept, old)
	}
	c.kept[key] = k
}
