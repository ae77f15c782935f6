package sim

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	oneSeed  = flag.Uint64("seed", 0, "run this seed alone, with its trace")
	without  = flag.String("without", "", "leave out these faults, such as restarts,zombies")
	allSeeds = flag.Uint64("seeds", seedsWanted(), "how many seeds to run (NODEKIT_SIM_SEEDS)")
	quick    = flag.Bool("quick", false, "stop at the first broken rule, and do not shrink")
	firstOne = flag.Uint64("first", 1, "the first of them")
)

// traceLines is how much of the end of a broken life is shown.
const traceLines = 45

func seedsWanted() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("NODEKIT_SIM_SEEDS"), 10, 64); err == nil {
		return n
	}
	return 500
}

// TestSim lives many lives. The first that breaks a rule is told with all that
// led to it.
func TestSim(t *testing.T) {
	left, err := ParseFaults(*without)
	if err != nil {
		t.Fatal(err)
	}
	if *oneSeed != 0 {
		result := Run(Options{Seed: *oneSeed, Without: left, Trace: func(line string) { t.Log(line) }})
		t.Logf("%d decisions, %d actions, at most %d in an hour", result.Steps, result.Actions, result.Busiest)
		if result.Broken != nil {
			t.Fatal(result.Broken)
		}
		return
	}
	var total Result
	broken := map[string]int{}
	for seed := *firstOne; seed < *firstOne+*allSeeds; seed++ {
		result := Run(Options{Seed: seed, Without: left})
		total.Steps += result.Steps
		total.Actions += result.Actions
		total.Busiest = max(total.Busiest, result.Busiest)
		if result.Broken == nil {
			continue
		}
		if *quick {
			t.Fatalf("seed %d: %v", seed, result.Broken)
		}
		broken[result.Broken.Rule]++
		if broken[result.Broken.Rule] == 1 {
			t.Error(story(seed, left, result.Broken))
		}
		if len(broken) >= 4 {
			break
		}
	}
	for rule, n := range broken {
		t.Logf("broken by %d seeds: %s", n, rule)
	}
	t.Logf("%d lives, %d decisions, %d actions, at most %d in an hour", *allSeeds, total.Steps, total.Actions, total.Busiest)
}

// TestLivesThatWereBroken lives again what more seeds than a usual run has once
// found. A seed tells another life whenever the simulation draws more or less than
// it did, so each cause also has a test of its own where it was repaired.
func TestLivesThatWereBroken(t *testing.T) {
	for _, seed := range []uint64{
		8108,                       // back-off: a run of ten minutes was ended by the agent
		8885,                       // back-off: all containers were restarted after a change of the spec
		1006062,                    // progress: what was signalled by a dead agent ended an hour later
		31553, 31903, 35372, 39807, // a late sandbox, an end without a run, a long run, a doubled container
		35164, // hooks before stop: a dead agent's start took effect while the pod was cleaned
		63264, // progress: the prober spoke of the probes of the pod before
	} {
		if result := Run(Options{Seed: seed}); result.Broken != nil {
			t.Errorf("seed %d: %v", seed, result.Broken)
		}
	}
}

// story tells a broken life again, with as few faults as break the same rule.
func story(seed uint64, left []Fault, broken *Violation) string {
	left = shrink(seed, left, broken.Rule)
	var lines []string
	result := Run(Options{Seed: seed, Without: left, Trace: func(line string) { lines = append(lines, line) }})
	if result.Broken != nil {
		broken = result.Broken
	}
	names := make([]string, len(left))
	for i, f := range left {
		names[i] = string(f)
	}
	again := fmt.Sprintf("go test ./test/sim -run Sim -seed %d", seed)
	if len(names) > 0 {
		again += " -without " + strings.Join(names, ",")
	}
	return fmt.Sprintf("seed %d: %v\n%s\nagain: %s", seed, broken, strings.Join(lines[max(0, len(lines)-traceLines):], "\n"), again)
}

// shrink leaves out each fault without which the same rule still breaks.
func shrink(seed uint64, left []Fault, rule string) []Fault {
	for _, f := range Faults() {
		if slices.Contains(left, f) {
			continue
		}
		fewer := append(slices.Clone(left), f)
		if result := Run(Options{Seed: seed, Without: fewer}); result.Broken != nil && result.Broken.Rule == rule {
			left = fewer
		}
	}
	return left
}
