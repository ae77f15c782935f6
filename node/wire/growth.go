package wire

import (
	"context"
	"slices"
	"sync"

	"nodekit.dev/node"
	"nodekit.dev/node/expand"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/volume"
)

// growth stands between who can grow volumes, who mounts them, and who follows
// their claims: each is made without the others.
type growth struct {
	mu       sync.Mutex
	grower   expand.Grower // nil: nobody can
	onMounts []func()
	onGrown  []func(expand.Growth)
}

// KeepGrower names who grows volumes; the last one counts.
func (c *Contents) KeepGrower(g expand.Grower) {
	c.growth.mu.Lock()
	c.growth.grower = g
	c.growth.mu.Unlock()
	c.MountsChanged()
}

// OnMountsChange has changed called whenever the volumes that are mounted, or
// who can grow them, may have changed. It must not block.
func (c *Contents) OnMountsChange(changed func()) {
	c.growth.mu.Lock()
	defer c.growth.mu.Unlock()
	c.growth.onMounts = append(c.growth.onMounts, changed)
}

// MountsChanged calls them. It never blocks.
func (c *Contents) MountsChanged() {
	c.growth.mu.Lock()
	calls := slices.Clone(c.growth.onMounts)
	c.growth.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// OnGrown has told called with each volume that was grown, or could not be, while
// it was mounted. It must not block.
func (c *Contents) OnGrown(told func(expand.Growth)) {
	c.growth.mu.Lock()
	defer c.growth.mu.Unlock()
	c.growth.onGrown = append(c.growth.onGrown, told)
}

// Grown calls them. It never blocks.
func (c *Contents) Grown(g expand.Growth) {
	c.growth.mu.Lock()
	calls := slices.Clone(c.growth.onGrown)
	c.growth.mu.Unlock()
	for _, call := range calls {
		call(g)
	}
}

// Grower is the one of [Contents.KeepGrower], whenever that comes.
func (c *Contents) Grower() expand.Grower { return grower{c} }

type grower struct{ contents *Contents }

func (g grower) current() expand.Grower {
	g.contents.growth.mu.Lock()
	defer g.contents.growth.mu.Unlock()
	return g.contents.growth.grower
}

// Grows says no where nobody can.
func (g grower) Grows(v volume.Recorded) bool {
	current := g.current()
	return current != nil && current.Grows(v)
}

// SizeOf does not know where nobody does.
func (g grower) SizeOf(v volume.Recorded) (int64, error) {
	if current := g.current(); current != nil {
		return current.SizeOf(v)
	}
	return 0, nil
}

// Expand does nothing where nobody can.
func (g grower) Expand(ctx context.Context, v volume.Recorded, size int64) (int64, error) {
	if current := g.current(); current != nil {
		return current.Expand(ctx, v, size)
	}
	return 0, nil
}

// PodEvent tells the users of the pod of that UID, if it is still known.
func (c *Contents) PodEvent(sink node.EventSink, uid, eventType, reason, message string) {
	n := c.node.Load()
	if n == nil {
		return
	}
	view, ok := n.Pod(uid)
	if !ok || view.Pod == nil {
		return
	}
	sink.PodEvent(node.PodEvent{
		UID: uid, Namespace: view.Pod.Namespace, Name: view.Pod.Name, Pod: view.Pod,
		Event: lifecycle.Event{Type: lifecycle.EventType(eventType), Reason: reason, Message: message},
	})
}
