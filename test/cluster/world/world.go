// Package world starts whole clusters for tests: a control plane (package
// plane) and nodes, each a containerd (package testbed) with an agent on it.
//
//	w, err := world.Start(ctx, world.Options{Nodes: 2})
//	if err != nil { ... }
//	defer w.Stop(ctx)
//	for _, n := range w.Nodes {
//		if err := w.StartAgent(ctx, n, world.AgentOptions{}); err != nil { ... }
//	}
//
// Each node has a network namespace of its own, joined to this machine by a
// cable: pods of all nodes, all agents and the API server reach each other, as
// machines of one network do. The control plane itself runs on this machine.
//
// # Rules for callers
//
// It needs root. A run that was killed is cleaned up by the next bed that
// starts on this machine.
package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/integration/testbed"
)

// Options says what to start.
type Options struct {
	// Nodes is how many beds to start; default: 1.
	Nodes int
	// Together leaves the nodes in this machine's network namespace.
	Together bool
	// Containerd is a version of package testbed; default: testbed.V2.
	Containerd string
	// Plane is the control plane; the world sets its Dir, Programs and Address.
	Plane plane.Options
	// Progress is told what is being built; default: nobody is.
	Progress io.Writer
}

// World is a cluster that runs.
type World struct {
	Plane *plane.Plane
	Nodes []*Node
}

// Node is one machine of the cluster.
type Node struct {
	Name  string
	Bed   *testbed.Bed
	Agent *testbed.Agent // nil until StartAgent
}

// Start starts the beds and the control plane, but no agent.
func Start(ctx context.Context, o Options) (*World, error) {
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	w := &World{}
	if err := w.start(ctx, o); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("world: %w", err), w.Stop(undo))
	}
	return w, nil
}

func (w *World) start(ctx context.Context, o Options) (err error) {
	if o.Plane.Programs, err = install.ControlPlane(ctx, o.Progress); err != nil {
		return err
	}
	for i := range o.Nodes {
		bed, err := testbed.Start(ctx, testbed.Options{Version: o.Containerd, Apart: !o.Together})
		if err != nil {
			return err
		}
		w.Nodes = append(w.Nodes, &Node{Name: fmt.Sprintf("node-%d", i), Bed: bed})
	}
	// In the first bed's folder, whatever a killed run leaves is swept with it.
	// Each node reaches each address of this machine.
	o.Plane.Dir = filepath.Join(w.Nodes[0].Bed.Dir, "plane")
	o.Plane.Address = w.Nodes[0].Bed.MachineIP
	w.Plane, err = plane.Start(ctx, o.Plane)
	return err
}

// Stop ends all and removes all that was made, pods included.
func (w *World) Stop(ctx context.Context) error {
	var errs []error
	for _, n := range w.Nodes {
		if n.Agent != nil {
			errs = append(errs, n.Agent.Kill(ctx))
		}
	}
	if w.Plane != nil {
		errs = append(errs, w.Plane.Stop(ctx))
	}
	for _, n := range w.Nodes {
		errs = append(errs, n.Bed.Stop(ctx))
	}
	return errors.Join(errs...)
}
