package wire

import (
	"context"
	"errors"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/admission"
	"nodekit.dev/node/lifecycle"
)

// ThisNode is what the parts of one agent know of its Node object, whoever
// keeps it: it stands between those that are made before the Registration and
// it. The zero value knows nothing yet. Safe for concurrent use.
type ThisNode struct {
	registration atomic.Pointer[Registration]
}

// Keep names who keeps the object, before the agent runs; nil: nobody.
func (t *ThisNode) Keep(r Registration) {
	if r != nil {
		t.registration.Store(&r)
	}
}

// Node is the node as last known; nil where nobody keeps it.
func (t *ThisNode) Node() *corev1.Node {
	if r := t.registration.Load(); r != nil {
		return (*r).Node()
	}
	return nil
}

// Kick has the object looked at again.
func (t *ThisNode) Kick() {
	if r := t.registration.Load(); r != nil {
		(*r).Kick()
	}
}

// hostIPs tells the addresses that the object has. As long as it has none,
// otherwise (nil: nobody) may guess, but not once it is the API server's: its
// addresses may be a cloud's to fill in.
func (t *ThisNode) hostIPs(otherwise func(context.Context) []string) func(context.Context) []string {
	return func(ctx context.Context) []string {
		if n := t.Node(); n != nil {
			if ips := lifecycle.HostIPs(n); len(ips) > 0 || n.UID != "" {
				return ips
			}
		}
		if otherwise == nil {
			return nil
		}
		return otherwise(ctx)
	}
}

// allocatable is what the node can give to pods; otherwise where nobody says.
func (t *ThisNode) allocatable(otherwise corev1.ResourceList) func() corev1.ResourceList {
	return func() corev1.ResourceList {
		if n := t.Node(); n != nil {
			return n.Status.Allocatable
		}
		return otherwise
	}
}

// nodes are what admitters ask about the node; nil where nobody keeps it.
func nodes(p ClusterParts) admission.Nodes {
	if p.Registration == nil {
		return nil
	}
	return knownNode{p.Registration, p.NodeGetter}
}

// knownNode is the Node object as the agent knows it.
type knownNode struct {
	registration Registration
	getter       NodeGetter // nil: the registration knows best
}

// Node is what the API server was last seen to have, else what the agent would
// register. It never waits for the API server.
func (n knownNode) Node(context.Context) (*corev1.Node, bool, error) {
	known := n.registration.Node()
	return known, known.UID != "", nil
}

// Fresh asks the API server.
func (n knownNode) Fresh(ctx context.Context) (*corev1.Node, error) {
	if n.getter == nil {
		return n.registration.Node(), nil
	}
	fresh, err := n.getter.Node(ctx)
	if err == nil && fresh == nil {
		err = errors.New("the API server has no such node")
	}
	return fresh, err
}
