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

// takeFor takes the lock of a volume and, since two volumes of a pod may name
// one claim, that of what is mounted.
func (l *locks) takeFor(ctx context.Context, uid string, s Source) (release func(), err error) {
	releaseName, err := l.take(ctx, volumeID{uid, s.Volume.Name})
	if err != nil || s.PersistentVolume == nil {
		return releaseName, err
	}
	releaseClaim, err := l.take(ctx, volumeID{uid, "claim/" + s.PersistentVolume.Name}) // no volume has such a name
	if err != nil {
		releaseName()
		return nil, err
	}
	return func() {
		releaseClaim()
		releaseName()
	}, nil
}
