package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one class of bad luck. Leaving one out does not change which random
// numbers the others draw first, so that a failing seed often fails without.
type Fault string

// The classes.
const (
	Restarts  Fault = "restarts"  // the agent dies and forgets
	Zombies   Fault = "zombies"   // calls of a dead agent take effect later
	Failures  Fault = "failures"  // calls fail without effect
	Effects   Fault = "effects"   // calls fail and took effect all the same
	Winners   Fault = "winners"   // cancelled calls take effect all the same
	Slowness  Fault = "slowness"  // calls take very long
	Exits     Fault = "exits"     // containers crash
	Stubborn  Fault = "stubborn"  // containers ignore SIGTERM
	Sandboxes Fault = "sandboxes" // sandboxes die
	Outages   Fault = "outages"   // the runtime does not answer
	Network   Fault = "network"   // the network is not ready
	Far       Fault = "far"       // volumes wait for an attach
	Stale     Fault = "stale"     // looks arrive late
	Hints     Fault = "hints"     // events of the runtime get lost
	Vanish    Fault = "vanish"    // somebody else removes dead containers
	Unknown   Fault = "unknown"   // the runtime loses sight of containers
	Probes    Fault = "probes"    // probes fail
	Hooks     Fault = "hooks"     // postStart hooks fail
	Admission Fault = "admission" // admission says no, or later
	Changes   Fault = "changes"   // the spec changes
	Stops     Fault = "stops"     // somebody wants the pod to end
	Comebacks Fault = "comebacks" // the pod comes back under its UID or name
	Objects   Fault = "objects"   // what the pod waits for comes, or seems to
)

// Faults lists all classes.
func Faults() []Fault {
	return []Fault{
		Restarts, Zombies, Failures, Effects, Winners, Slowness, Exits, Stubborn, Sandboxes, Outages, Network,
		Far, Stale, Hints, Vanish, Unknown, Probes, Hooks, Admission, Changes, Stops, Comebacks, Objects,
	}
}

// ParseFaults reads a list separated by commas.
func ParseFaults(list string) ([]Fault, error) {
	var out []Fault
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		if !slices.Contains(Faults(), Fault(name)) {
			return nil, fmt.Errorf("fault %q: not one of %v", name, Faults())
		}
		out = append(out, Fault(name))
	}
	return out, nil
}

// chance draws whether something happens, and is false after all has healed.
func (l *life) chance(f Fault, p float64) bool {
	hit := l.rng.Float64() < p
	return hit && !l.without[f] && !l.healed
}
