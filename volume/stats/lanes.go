package stats

import (
	"cmp"
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// lane has the places for calls of one kind of volume.
func (m *Manager) lane(kind string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lanes[kind] == nil {
		m.lanes[kind] = make(chan struct{}, m.cfg.Width)
	}
	return m.lanes[kind]
}

// enter waits for a place. leave may be called more than once.
func (m *Manager) enter(ctx context.Context, lane chan struct{}) (leave func(), err error) {
	select {
	case lane <- struct{}{}:
		return sync.OnceFunc(func() { <-lane }), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// sameHealth compares conditions; their order does not count.
func sameHealth(a, b []corev1.VolumeHealthCondition) bool {
	return slices.Equal(sortedHealth(a), sortedHealth(b))
}

func sortedHealth(list []corev1.VolumeHealthCondition) []corev1.VolumeHealthCondition {
	return slices.SortedFunc(slices.Values(list), func(a, b corev1.VolumeHealthCondition) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
}
