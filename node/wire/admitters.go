package wire

import (
	"slices"
	"sync/atomic"

	"nodekit.dev/node"
	"nodekit.dev/node/admission"
)

// Admitters are the stock ones with the vendor's among them: one with the name
// of a stock admitter takes its place. The second result is told the node, whose
// pods they look at, before it runs. What is asked about the node itself is what p knows.
func Admitters(cfg Config, p ClusterParts, vendor []node.Ordered[node.Admitter]) ([]node.Ordered[node.Admitter], func(*node.Node), error) {
	table := &podTable{}
	stock, err := admission.New(cfg.Admission, nodes(p), table)
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
