package wire

import (
	"sync/atomic"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/volume"
)

// Contents passes on what the content of volumes depends on to the manager that
// keeps it up to date, where the agent has one: a vendor's Mounter has its own
// ways. Safe for concurrent use. The zero value has none yet.
type Contents struct {
	manager atomic.Pointer[volume.Manager]
}

var _ node.StatusSink = (*Contents)(nil)

// Keep names the manager.
func (c *Contents) Keep(m *volume.Manager) { c.manager.Store(m) }

// PodStatus tells of each pod and of its newest metadata; it never blocks, and
// a pod that did not change costs nothing.
func (c *Contents) PodStatus(u node.StatusUpdate) {
	if m := c.manager.Load(); m != nil && u.Pod != nil && u.Phase < lifecycle.Stopping {
		m.Follow(u.Pod)
	}
}

// Changed says that an object changed which the pod refers to.
func (c *Contents) Changed(uid string) {
	if m := c.manager.Load(); m != nil {
		m.Changed(uid)
	}
}
