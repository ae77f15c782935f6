package apicache

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/objects"
	"nodekit.dev/node/objects/internal/told"
)

// name is that of one object, or of a namespace alone.
type name struct{ namespace, name string }

// shelf holds one V per name for as long as a pod refers to it.
type shelf[V any] struct {
	// open makes the V of a name and begins its work; tell is to be called when
	// it changed.
	open func(n name, tell func()) (v V, stop func())
	told *told.Changes[objects.Change] // nil: nobody needs to know

	mu    sync.Mutex
	items map[name]*shelved[V]
}

type shelved[V any] struct {
	value V
	stop  func()
	refs  map[types.UID]struct{}
}

func newShelf[V any](told *told.Changes[objects.Change], open func(name, func()) (V, func())) *shelf[V] {
	return &shelf[V]{open: open, told: told, items: map[name]*shelved[V]{}}
}

// refer returns the V of a name and notes that the pod refers to it.
func (s *shelf[V]) refer(uid types.UID, n name) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	item := s.items[n]
	if item == nil {
		item = &shelved[V]{refs: map[types.UID]struct{}{}}
		item.value, item.stop = s.open(n, func() { s.changed(n) })
		s.items[n] = item
	}
	item.refs[uid] = struct{}{}
	return item.value
}

func (s *shelf[V]) changed(n name) {
	if s.told == nil {
		return
	}
	s.mu.Lock()
	var uids []types.UID
	if item := s.items[n]; item != nil {
		uids = slices.Sorted(maps.Keys(item.refs))
	}
	s.mu.Unlock()
	s.told.Add(uids...)
}

// release drops the references of a pod, and what nobody refers to any more.
func (s *shelf[V]) release(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, item := range s.items {
		delete(item.refs, uid)
		if len(item.refs) == 0 {
			item.stop()
			delete(s.items, n)
		}
	}
}
