package wire

import (
	"fmt"
	"sync/atomic"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/probe"
)

// ProbeEvents tells users of checks that did not go well, as events of their
// pods, in the stock kubelet's words. Attach gives it the node.
type ProbeEvents struct{ node atomic.Pointer[node.Node] }

// Attach says which node's pods are probed.
func (e *ProbeEvents) Attach(n *node.Node) { e.node.Store(n) }

// Observer is what a probe.Manager is to call.
func (e *ProbeEvents) Observer() probe.Observer { return probe.Observer{Checked: e.checked} }

func (e *ProbeEvents) checked(c probe.Checked) {
	event, bad := eventOf(c)
	if n := e.node.Load(); bad && n != nil {
		n.Tell(c.Target.UID, event)
	}
}

// eventOf is what there is to tell of a check, if anything.
func eventOf(c probe.Checked) (lifecycle.Event, bool) {
	event := lifecycle.Event{Type: lifecycle.EventWarning, Reason: "Unhealthy", Container: c.Target.Container}
	switch c.Outcome.Result {
	case probe.Success:
		return event, false
	case probe.Warning:
		event.Reason = "ProbeWarning"
		event.Message = fmt.Sprintf("%s probe warning: %s", c.Target.Type, c.Outcome.Output)
	case probe.Failure:
		event.Message = fmt.Sprintf("%s probe failed: %s", c.Target.Type, c.Outcome.Output)
	case probe.Unknown:
		why := c.Outcome.Output
		if c.Outcome.Err != nil {
			why = c.Outcome.Err.Error()
		}
		event.Message = fmt.Sprintf("%s probe errored and resulted in unknown state: %s", c.Target.Type, why)
	}
	return event, true
}
