package volume

import (
	"context"
	"sync"
)

// volumeID names one volume of one pod.
type volumeID struct{ uid, name string }

// locks keeps the calls for one volume of one pod apart: a refresh may come at
// any time, also while the volume is being unmounted.
type locks struct {
	mu   sync.Mutex
	held map[volumeID]*lock
}

type lock struct {
	token chan struct{} // holds one token while somebody has the lock
	users int           // who has it or waits for it
}

// take waits for the lock, until ctx ends.
func (l *locks) take(ctx context.Context, id volumeID) (release func(), err error) {
	l.mu.Lock()
	one := l.held[id]
	if one == nil {
		one = &lock{token: make(chan struct{}, 1)}
		l.held[id] = one
	}
	one.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, id)
		}
	}
	select {
	case one.token <- struct{}{}:
		return func() {
			<-one.token
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
