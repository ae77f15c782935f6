package volume

import (
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TellSlow is what tells users that five files of a volume changed so far.
func TellSlow(t *testing.T, tell func(*corev1.Pod, string)) (stop func()) {
	t.Helper()
	m := &Manager{layout: layout{root: "/r"}, observer: Observer{OwnershipSlow: tell}}
	var files atomic.Int64
	files.Store(5)
	return m.tellSlow(MountRequest{Pod: &corev1.Pod{}}, "/r/pods/uid/volumes/p/v", &files)
}
