package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/csidriver"
)

// TestCSIKilled kills the agent with SIGKILL before and after each call that it
// makes for a volume, has it start again, and wants what was begun to be
// finished or undone: the pod runs, or is gone, no call is one that CSI forbids,
// nothing is left, and no data is lost.
func TestCSIKilled(t *testing.T) {
	require(t)
	csidriver.Require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	e.watch.exceptIn("csikilled")
	ns := e.namespace(t, "csikilled")
	d := newDisk(t, e, ns, diskOptions{})
	for _, op := range []csidriver.Op{csidriver.Stage, csidriver.Publish, csidriver.Unpublish, csidriver.Unstage} {
		for _, when := range []csidriver.When{csidriver.Before, csidriver.After} {
			t.Run(fmt.Sprintf("%s/%s", op, when), func(t *testing.T) {
				d.t = t
				d.killedAt(op, when)
			})
		}
	}
	d.t = t
}

func (d *disk) killedAt(op csidriver.Op, when csidriver.When) {
	d.t.Helper()
	n := len(d.driver.Calls("", csidriver.Stage))
	name := fmt.Sprintf("v%d", n)
	d.claim(claim{name: name, fsType: "ext4", size: "32Mi"})
	mounting := op == csidriver.Stage || op == csidriver.Publish
	held := d.driver.Hold(op, when, name)
	d.pod(name, podOptions{})
	if mounting {
		d.killed(held)
	}
	d.ready(name)
	d.written(name)
	if mounting {
		d.deletePod(name)
	} else {
		d.kubectl(d.t, "-n", d.ns, "delete", "pod", name, "--wait=false")
		d.killed(held)
		d.kubectl(d.t, "-n", d.ns, "wait", "pod/"+name, "--for=delete", "--timeout=60s")
	}
	d.gone()
	d.kept(name)
	if err := faults(d.driver.Violations()); err != nil {
		d.t.Error(err)
	}
}

// killed kills the agent while the driver holds a call, and starts it again.
func (d *disk) killed(held *csidriver.Held) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	if err := held.Reached(ctx); err != nil {
		d.t.Fatalf("%v\n%s", err, d.report())
	}
	if err := d.node.Agent.Kill(ctx); err != nil {
		d.t.Fatal(err)
	}
	if err := d.node.Agent.Start(ctx); err != nil {
		d.t.Fatal(err)
	}
}

// TestCSINonGraceful: the node goes, its pods are deleted by force, as after an
// out-of-service taint, and are started elsewhere. When it comes back, it takes
// away what is left, before anything else uses the volume there, and loses no
// data. The same for a volume whose driver comes back last.
func TestCSINonGraceful(t *testing.T) {
	require(t)
	csidriver.Require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	e.watch.exceptIn("csinongraceful")
	ns := e.namespace(t, "csinongraceful")
	d := newDisk(t, e, ns, diskOptions{})
	for _, name := range []string{"one", "two"} {
		d.claim(claim{name: name, fsType: "ext4", size: "32Mi"})
		d.pod(name, podOptions{})
		d.ready(name)
		d.written(name)
	}
	if err := d.node.Agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.driver.Stop(); err != nil {
		t.Fatal(err)
	}
	e.kubectl(t, "-n", ns, "delete", "pods", "--all", "--force", "--grace-period=0", "--timeout=30s")
	if err := d.node.Agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Without the driver, nothing can be unmounted, and nothing may be removed.
	e.eventually(t, patience, func() error { return nothingInRuntime(t.Context(), d.node) })
	select {
	case <-time.After(2 * time.Second):
	case <-t.Context().Done():
	}
	d.start()
	d.gone()
	for _, name := range []string{"one", "two"} {
		d.kept(name)
		d.only(name, map[csidriver.Op]int{csidriver.Stage: 1, csidriver.Publish: 1})
	}
	e.eventually(t, patience, func() error { return nothingOnDisk(d.node) })
}
