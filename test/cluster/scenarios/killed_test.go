package scenarios

import (
	"context"
	"testing"

	"nodekit.dev/test/cluster/world"
)

func killRounds() int {
	if soaking {
		return 20
	}
	return 3
}

// TestKilled kills agent, API server and containerd in turn amid churn. Watched
// through the API: no pod that ran goes from Ready to not Ready, no container
// is restarted, no pod hangs in its deletion, and nothing is left over.
func TestKilled(t *testing.T) {
	require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	c := newChurn(t, e, e.namespace(t, "killed"))
	c.makeAll(t)
	node := e.Nodes[0]
	victims := []struct {
		name        string
		kill, start func(context.Context) error
		cutsOff     bool // the starts of containers that are under way
	}{
		{"the agent", node.Agent.Kill, node.Agent.Start, true},
		{"the API server", e.Plane.KillAPIServer, e.Plane.StartAPIServer, false},
		{"containerd", node.Bed.KillRuntime, node.Bed.StartRuntime, true},
	}
	for round := range killRounds() {
		for _, v := range victims {
			stop := c.start(t)
			c.see(t, 1+c.random.IntN(8)) // some changes see their end, others are cut off
			if err := v.kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := v.start(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.see(t, 1+c.random.IntN(8))
			stop()
			c.allThere(t)
			for _, fault := range e.watch.drain() {
				t.Errorf("round %d, %s was killed: %s", round, v.name, fault)
			}
			again := e.watch.drainCutOff()
			if len(again) > 0 && !v.cutsOff || len(again) > churnWorkers {
				t.Errorf("round %d, %s was killed: %d containers were started once more", round, v.name, len(again))
			}
			for _, start := range again {
				t.Logf("started once more: %s", start)
			}
			if t.Failed() {
				t.Fatal(e.report())
			}
			t.Logf("round %d: %s was killed; the slowest deletion took %v", round, v.name, c.slowestGone())
		}
	}
	c.checkSteady(t)
}
