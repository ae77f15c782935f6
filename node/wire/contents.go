package wire

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/objects"
	"nodekit.dev/volume"
	"nodekit.dev/volume/stats"
)

// Contents stands between the getters of objects and what is made of them:
// changes go to volumes and pods, and the getters are told when a pod refers to
// nothing any more. Safe for concurrent use. The zero value has none yet.
type Contents struct {
	manager atomic.Pointer[volume.Manager]
	node    atomic.Pointer[node.Node]
	stats   atomic.Pointer[stats.Manager]

	mu      sync.Mutex
	release []func(types.UID)
	onNode  []func()

	growth growth
	csi    csiParts
}

var _ node.StatusSink = (*Contents)(nil)

// Keep names the manager that keeps the content of volumes up to date, where
// the agent has one: a vendor's Mounter has its own ways.
func (c *Contents) Keep(m *volume.Manager) { c.manager.Store(m) }

// Attach names the node whose pods are told of changes.
func (c *Contents) Attach(n *node.Node) { c.node.Store(n) }

// OnRelease has release called, once nothing is left of a pod, with its UID; it
// may be called again for a pod. It is for getters that keep what pods refer to.
func (c *Contents) OnRelease(release func(types.UID)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release = append(c.release, release)
}

// OnNodeChange has changed called whenever the Node object changed. It must not
// block.
func (c *Contents) OnNodeChange(changed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onNode = append(c.onNode, changed)
}

// NodeChanged says that the API server has another Node object than before.
func (c *Contents) NodeChanged() {
	c.mu.Lock()
	calls := slices.Clone(c.onNode)
	c.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// Recorded lists the volumes of claims that are on the node; none where a
// vendor's Mounter keeps them.
func (c *Contents) Recorded() ([]volume.Recorded, error) {
	if m := c.manager.Load(); m != nil {
		return m.Recorded()
	}
	return nil, nil
}

// PodStatus tells of each pod and of its newest metadata; it never blocks, and
// a pod that did not change costs nothing.
func (c *Contents) PodStatus(u node.StatusUpdate) {
	if m := c.manager.Load(); m != nil && u.Pod != nil && u.Phase < lifecycle.Stopping {
		m.Follow(u.Pod)
	}
	c.measure(u)
}

// Changed says that an object changed which the pod refers to.
func (c *Contents) Changed(uid string) {
	if m := c.manager.Load(); m != nil {
		m.Changed(uid)
	}
	if n := c.node.Load(); n != nil {
		n.News(uid)
	}
}

// Follow passes changes on until ctx ends, and returns its error.
func (c *Contents) Follow(ctx context.Context, changes <-chan objects.Change) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change := <-changes:
			c.Changed(string(change.UID))
		}
	}
}

// static says whether the pod of that UID is a static one.
func (c *Contents) static(uid types.UID) bool {
	n := c.node.Load()
	if n == nil {
		return false
	}
	view, _ := n.Pod(string(uid))
	return view.Static
}

// forgetting is the hook that tells the getters of a pod's end; none where
// nobody wants to know.
func (c *Contents) forgetting() []node.Ordered[node.Hook] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.release) == 0 {
		return nil
	}
	return []node.Ordered[node.Hook]{{Name: "objects", Value: forgetting{contents: c}}}
}

type forgetting struct {
	node.NoHook
	contents *Contents
}

// Cleanup forgets.
func (f forgetting) Cleanup(_ context.Context, pod *corev1.Pod) error {
	f.contents.mu.Lock()
	release := slices.Clone(f.contents.release)
	f.contents.mu.Unlock()
	for _, call := range release {
		call(pod.UID)
	}
	return nil
}
