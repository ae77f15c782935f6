package app

import (
	"os"
	"runtime/debug"
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
