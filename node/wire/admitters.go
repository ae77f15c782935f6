package wire

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/admission"
)

// Admitters are the stock ones with the vendor's among them: one with the name
// of a stock admitter takes its place. The second result is told the node, whose
// pods they look at, before it runs. A nil member is an agent that stands alone.
func Admitters(cfg Config, m *Member, vendor []node.Ordered[node.Admitter]) ([]node.Ordered[node.Admitter], func(*node.Node), error) {
	table := &podTable{}
	var nodes admission.Nodes
	if m != nil {
		nodes = memberNode{m}
	}
	stock, err := admission.New(cfg.Admission, nodes, table)
	if err != nil {
		return nil, nil, err
	}
	all := slices.Clone(vendor)
	for _, s := range stock {
		if !slices.ContainsFunc(vendor, func(v node.Ordered[node.Admitter]) bool { return v.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all, func(n *node.Node) { table.node.Store(n) }, nil
}

// podTable shows the pods of a node that is made after it.
type podTable struct{ node atomic.Pointer[node.Node] }

// Pods are none before there is a node.
func (t *podTable) Pods() []node.PodView {
	if n := t.node.Load(); n != nil {
		return n.Pods()
	}
	return nil
}

// memberNode is the Node object as the member knows it.
type memberNode struct{ m *Member }

// Node is what the API server was last seen to have, else what the agent would
// register. It never waits for the API server.
func (n memberNode) Node(context.Context) (*corev1.Node, bool, error) {
	known := n.m.Register.Node()
	return known, known.UID != "", nil
}

// Fresh asks the API server.
func (n memberNode) Fresh(ctx context.Context) (*corev1.Node, error) {
	fresh, err := n.m.Objects.Node(ctx)
	if err == nil && fresh == nil {
		err = errors.New("the API server has no such node")
	}
	return fresh, err
}
