package kubeletapi

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// Ends tells who follows a log that its container ended. It is a
// node.StatusSink and safe for concurrent use; use NewEnds. A nil one never
// tells.
type Ends struct {
	mu      sync.Mutex
	watches map[string]map[*endWatch]struct{} // by UID of the pod
}

type endWatch struct {
	container string // ID
	ended     chan struct{}
}

var _ node.StatusSink = (*Ends)(nil)

// NewEnds makes one that nobody waits for.
func NewEnds() *Ends { return &Ends{watches: map[string]map[*endWatch]struct{}{}} }

// PodStatus implements node.StatusSink.
func (e *Ends) PodStatus(update node.StatusUpdate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watches[update.UID] {
		if update.Phase == lifecycle.Finished || !runs(update.Status, w.container) {
			close(w.ended)
			e.remove(update.UID, w)
		}
	}
}

// watch gives a channel that is closed when the pod's status does not show the
// container running any more. Whoever calls it must look after that whether the
// container runs, and call forget when done.
func (e *Ends) watch(uid, container string, wanted bool) (ended <-chan struct{}, forget func()) {
	if e == nil || !wanted {
		return nil, func() {}
	}
	w := &endWatch{container: container, ended: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watches[uid] == nil {
		e.watches[uid] = map[*endWatch]struct{}{}
	}
	e.watches[uid][w] = struct{}{}
	return w.ended, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.remove(uid, w)
	}
}

// remove is idempotent. The caller holds the lock.
func (e *Ends) remove(uid string, w *endWatch) {
	delete(e.watches[uid], w)
	if len(e.watches[uid]) == 0 {
		delete(e.watches, uid)
	}
}

func runs(s corev1.PodStatus, id string) bool {
	for _, group := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses} {
		for _, c := range group {
			if c.State.Running != nil && strings.HasSuffix(c.ContainerID, id) {
				return true
			}
		}
	}
	return false
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
