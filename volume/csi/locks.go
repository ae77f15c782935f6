package csi

import (
	"context"
	"errors"
	"sync"
)

// locks keep the calls for one volume apart.
type locks struct {
	mu   sync.Mutex
	held map[volumeKey]*lock
}

type lock struct {
	token chan struct{}      // holds one token while somebody has the lock
	users int                // who has it or waits for it
	yield context.CancelFunc // ends the work of a holder that gives way; nil: it does not
}

// ErrBusy is the answer of Stats and Health while another call for the volume is
// in flight.
var ErrBusy = errors.New("another call for the volume is in flight")

// take waits for the lock, until ctx ends. A holder that gives way is cancelled.
func (l *locks) take(ctx context.Context, key volumeKey) (release func(), err error) {
	l.mu.Lock()
	one := l.enter(key)
	if one.yield != nil {
		one.yield()
	}
	l.mu.Unlock()
	select {
	case one.token <- struct{}{}:
		return func() { l.free(key, one) }, nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leave(key, one)
		return nil, ctx.Err()
	}
}

// try takes the lock if nobody has it, for work that gives way: the context that
// it returns ends when somebody waits.
func (l *locks) try(ctx context.Context, key volumeKey) (yielding context.Context, release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] != nil {
		return nil, nil, ErrBusy
	}
	one := l.enter(key)
	one.token <- struct{}{}
	ctx, one.yield = context.WithCancel(ctx)
	cancel := one.yield
	return ctx, func() {
		cancel()
		l.mu.Lock()
		one.yield = nil
		l.mu.Unlock()
		l.free(key, one)
	}, nil
}

func (l *locks) enter(key volumeKey) *lock {
	one := l.held[key]
	if one == nil {
		one = &lock{token: make(chan struct{}, 1)}
		l.held[key] = one
	}
	one.users++
	return one
}

func (l *locks) free(key volumeKey, one *lock) {
	<-one.token
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(key, one)
}

// leave is called with the mutex.
func (l *locks) leave(key volumeKey, one *lock) {
	if one.users--; one.users == 0 {
		delete(l.held, key)
	}
}
