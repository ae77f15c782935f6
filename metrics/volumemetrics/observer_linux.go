package volumemetrics

import "nodekit.dev/volume"

// Observer observes the volume manager.
func (m *Metrics) Observer() volume.Observer {
	return volume.Observer{Done: func(op volume.Operation) { m.Done(Operation(op)) }}
}
