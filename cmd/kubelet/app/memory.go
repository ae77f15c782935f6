package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// gcPercent is how much garbage the heap may hold beside what lives. An agent's
// heap is some MB that hardly change, so that collecting twice as often costs
// no CPU that one could measure (docs/performance.md), and memory is what small
// nodes have least of.
const gcPercent = 50

// tuneMemory sets it for the process, unless the operator has set GOGC.
func tuneMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
}

// When the agent has nothing to do, no collection comes for two minutes, and
// what a burst of pods left behind stays. So it is given back once the agent
// was quiet for trimInterval: allocated less than quietBytes meanwhile, but at
// least worthBytes since the last time. With it go the pages of the program.
const (
	trimInterval = 5 * time.Second
	quietBytes   = 2 << 20
	worthBytes   = 2 << 20
)

// keepTrimmed gives memory back until ctx ends.
func keepTrimmed(ctx context.Context) error {
	tick := time.NewTicker(trimInterval)
	defer tick.Stop()
	var last, trimmed uint64
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		now := allocated()
		if worthTrimming(now, last, trimmed) {
			debug.FreeOSMemory()
			_ = dropProgramPages() // where /proc does not tell, they stay
			trimmed = now
		}
		last = now
	}
}

// worthTrimming decides from how much was allocated in all: now, an interval
// ago, and at the last time.
func worthTrimming(now, before, trimmed uint64) bool {
	return now-before < quietBytes && now-trimmed >= worthBytes
}

// allocated is how much the process has allocated since it began, in bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
