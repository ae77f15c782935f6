package csinode

import (
	"context"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// Objects reads CSIDriver objects, and keeps each for a few seconds. While the
// API server can not be asked, what it said last counts. Use NewObjects. Safe for
// concurrent use.
type Objects struct {
	storage rest.Interface

	mu    sync.Mutex
	known map[string]*kept
}

type kept struct {
	busy   chan struct{} // holds one token while somebody asks
	object *storagev1.CSIDriver
	err    error // NotFound
	at     time.Time
}

const (
	// objectLife is how long an answer counts.
	objectLife = 5 * time.Second
	// requestTime bounds one request.
	requestTime = 10 * time.Second
)

// NewObjects reads from storage.k8s.io/v1.
func NewObjects(storage rest.Interface) *Objects {
	return &Objects{storage: storage, known: map[string]*kept{}}
}

// CSIDriver reads one; the object is shared. An error that apimachinery's
// errors.IsNotFound knows, and that answers NotFound() true, says that there is
// none. It may block until ctx ends.
func (o *Objects) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	o.mu.Lock()
	k := o.known[name]
	if k == nil {
		k = &kept{busy: make(chan struct{}, 1)}
		o.known[name] = k
	}
	o.mu.Unlock()
	select {
	case k.busy <- struct{}{}:
		defer func() { <-k.busy }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !k.at.IsZero() && time.Since(k.at) < objectLife {
		return k.object, k.err
	}
	object, err := o.read(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		if k.object != nil {
			return k.object, nil
		}
		return nil, err
	}
	k.object, k.err, k.at = object, nil, time.Now()
	if err != nil {
		k.object, k.err = nil, &NotFoundError{err}
	}
	return k.object, k.err
}

func (o *Objects) read(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	object := &storagev1.CSIDriver{}
	return object, o.storage.Get().Resource("csidrivers").Name(name).Do(ctx).Into(object)
}

// NotFoundError says that the API server has no such object.
type NotFoundError struct{ Err error }

func (e *NotFoundError) Error() string { return e.Err.Error() }
func (e *NotFoundError) Unwrap() error { return e.Err }

// NotFound tells the class of the error.
func (e *NotFoundError) NotFound() bool { return true }
