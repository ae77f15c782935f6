// Package follow keeps up with objects of an API server for tests: it lists and
// watches, remembers the latest of each, shows every change to a hook, and lets
// tests wait for a state instead of asking again and again.
//
//	pods := follow.New(client, "pods", func(c follow.Change[*corev1.Pod]) { ... })
//	go pods.Run(ctx)
//	err := pods.Until(ctx, func(all []*corev1.Pod) error { ... })
//
// # Rules for callers
//
// Objects are shared: do not change them. When the connection breaks, the
// objects are listed anew: changes in between are seen as one. What must not
// have happened meanwhile has to show in the objects themselves (transition
// times, restart counts).
package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Object is what can be followed, such as *corev1.Pod.
type Object interface {
	metav1.Object
	runtime.Object
}

// Change is one thing that happened to an object.
type Change[P Object] struct {
	// Old is what it was; the zero value when it is new.
	Old P
	// New is what it is; when it is Gone, what it was at the end.
	New  P
	Gone bool
	// Known says that there was an Old.
	Known bool
}

// Follower follows one resource in all namespaces. Its methods are safe for
// concurrent use.
type Follower[P Object] struct {
	client   rest.Interface
	resource string
	onChange func(Change[P])

	mu      sync.Mutex
	objects map[types.UID]P
	listed  bool
	last    error         // why the last list or watch ended
	moved   chan struct{} // closed, and made anew, at each change
}

// New returns a follower of a resource such as "pods". The hook, unless nil, is
// called with each change, in order, from the goroutine of Run.
func New[P Object](client rest.Interface, resource string, onChange func(Change[P])) *Follower[P] {
	if onChange == nil {
		onChange = func(Change[P]) {}
	}
	return &Follower[P]{
		client: client, resource: resource, onChange: onChange,
		objects: map[types.UID]P{}, moved: make(chan struct{}),
	}
}

// retryEvery is how often a broken connection is tried again.
const retryEvery = 100 * time.Millisecond

// Run follows until ctx ends, through all failures.
func (f *Follower[P]) Run(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := f.follow(ctx)
		f.mu.Lock()
		f.last = err
		f.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// follow lists once and watches until the watch ends.
func (f *Follower[P]) follow(ctx context.Context) error {
	list, err := f.client.Get().Resource(f.resource).Do(ctx).Get()
	if err != nil {
		return err
	}
	if err := f.replace(list); err != nil {
		return err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	w, err := f.client.Get().Resource(f.resource).Param("watch", "true").Param("resourceVersion", about.GetResourceVersion()).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		o, ok := event.Object.(P)
		if !ok {
			return fmt.Errorf("watch of %s: %v", f.resource, event)
		}
		f.take(o, event.Type == watch.Deleted)
	}
	return errors.New("the watch ended")
}

// replace takes a whole list: what is not in it is gone.
func (f *Follower[P]) replace(list runtime.Object) error {
	left := maps.Collect(maps.All(f.snapshot()))
	err := meta.EachListItem(list, func(o runtime.Object) error {
		object, ok := o.(P)
		if !ok {
			return fmt.Errorf("list of %s: has a %T", f.resource, o)
		}
		delete(left, object.GetUID())
		f.take(object, false)
		return nil
	})
	for _, o := range left {
		f.take(o, true)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed = true
	f.tell()
	return err
}

func (f *Follower[P]) take(o P, gone bool) {
	f.mu.Lock()
	old, known := f.objects[o.GetUID()]
	if gone {
		delete(f.objects, o.GetUID())
	} else {
		f.objects[o.GetUID()] = o
	}
	f.mu.Unlock()
	if known && !gone && old.GetResourceVersion() == o.GetResourceVersion() {
		return // a list told it again
	}
	f.onChange(Change[P]{Old: old, New: o, Gone: gone, Known: known})
	f.mu.Lock()
	f.tell()
	f.mu.Unlock()
}

// tell wakes who waits. The lock is held.
func (f *Follower[P]) tell() {
	close(f.moved)
	f.moved = make(chan struct{})
}

func (f *Follower[P]) snapshot() map[types.UID]P {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.objects)
}

// All returns what there is, by namespace and name.
func (f *Follower[P]) All() []P {
	return slices.SortedFunc(maps.Values(f.snapshot()), func(a, b P) int {
		if a.GetNamespace()+"/"+a.GetName() < b.GetNamespace()+"/"+b.GetName() {
			return -1
		}
		return 1
	})
}

// Until waits until check is content with what there is. When ctx ends first,
// the error is what check said last.
func (f *Follower[P]) Until(ctx context.Context, check func(all []P) error) error {
	for {
		f.mu.Lock()
		moved, listed, last := f.moved, f.listed, f.last
		f.mu.Unlock()
		err := fmt.Errorf("%s were never listed: %w", f.resource, last)
		if listed {
			err = check(f.All())
		}
		if err == nil {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("still not so when %w: %w", context.Cause(ctx), err)
		}
	}
}
