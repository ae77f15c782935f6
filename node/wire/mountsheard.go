package wire

import "nodekit.dev/volume"

// hearing is the one place where the agent's own parts hear of what the manager
// of volumes did, after the observer of the configuration.
func (c *Contents) hearing(o volume.Observer) volume.Observer {
	done := o.Done
	o.Done = func(op volume.Operation) {
		if done != nil {
			done(op)
		}
		c.heard(op)
	}
	return o
}

// heard tells those who follow mounts. It never blocks.
func (c *Contents) heard(op volume.Operation) {
	if op.Kind == "refresh" {
		return // what is mounted stays what it was
	}
	c.MountsChanged()
	if m := c.stats.Load(); m != nil && op.Kind == "mount" && op.Err == nil {
		m.Mounted(op.UID, op.Volume)
	}
}
