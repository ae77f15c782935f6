package register

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
)

// Setter fills in a part of the Node object.
type Setter interface {
	// Set changes the node in place, and may leave it half changed when it fails:
	// the other setters run all the same. The node holds what it last told, so
	// that a setter that knows nothing new leaves it alone. It may block until
	// ctx ends; calls come one at a time, but for a Node that is new, which may
	// be built again while another is told. Events are made from what changed;
	// a setter tells none. Spec is ignored on an existing node.
	Set(ctx context.Context, n *corev1.Node) error
}

// SetterFunc is a function that is a Setter.
type SetterFunc func(ctx context.Context, n *corev1.Node) error

// Set implements Setter.
func (f SetterFunc) Set(ctx context.Context, n *corev1.Node) error { return f(ctx, n) }

// The names of the stock setters, for a vendor's After and to take their place.
const (
	SetAddresses        = "addresses"
	SetCapacity         = "capacity"
	SetAllocatable      = "allocatable" // after capacity
	SetMachine          = "machine"
	SetVersions         = "versions"
	SetPlatform         = "platform"
	SetEndpoints        = "daemon-endpoints"
	SetImages           = "images"
	SetRuntimeHandlers  = "runtime-handlers"
	SetFeatures         = "features"
	SetDeclaredFeatures = "declared-features"
	SetVolumesInUse     = "volumes-in-use"
	SetMemoryPressure   = "memory-pressure"
	SetDiskPressure     = "disk-pressure"
	SetPIDPressure      = "pid-pressure"
	SetReady            = "ready" // after capacity and the pressures
)

// merge puts a vendor's setters among the stock ones, in order.
func merge(stock, vendor []node.Ordered[Setter]) ([]node.Ordered[Setter], error) {
	all := slices.Clone(vendor)
	for _, s := range stock {
		if !slices.ContainsFunc(vendor, func(v node.Ordered[Setter]) bool { return v.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return node.InOrder("node status setter", all)
}

// fill runs all setters. Problems come by the setter's name.
func fill(ctx context.Context, n *corev1.Node, setters []node.Ordered[Setter]) map[string]error {
	problems := map[string]error{}
	for _, s := range setters {
		err := tasks.Contain(s.Name, func() error { return s.Value.Set(ctx, n) })
		if err != nil {
			problems[s.Name] = fmt.Errorf("node status setter %s: %w", s.Name, err)
		}
	}
	return problems
}
