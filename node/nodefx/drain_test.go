package nodefx_test

import (
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

// TestDrainIsNotCutShort: the node stops as long as its drain may take, also
// where the budget of the parts is smaller.
func TestDrainIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		b.Script("app", runtimetest.Behaviour{TermDelay: 20 * time.Second})
		drain := func(cfg *wire.Config) { cfg.Node.DrainOnStop, cfg.Node.DrainTimeout = true, 30*time.Second }
		a := newAgent(t, onWorld(t, b, oneWebPod(), nodefx.Configure(drain), nodefx.StopBudget(5*time.Second))...)
		must(t, a.Start(t.Context()))
		after(time.Second)
		begun := time.Now()
		must(t, a.Stop(t.Context()))
		if took := time.Since(begun); took != 20*time.Second || b.Running(t, "1") != 0 {
			t.Errorf("stopped after %v with %d containers that run", took, b.Running(t, "1"))
		}
	})
}
