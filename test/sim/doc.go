// Package sim takes the pod machine of node/lifecycle through random lives in
// a simulated node, and holds at every step what must hold of every machine.
//
// A life comes from one seed: a random pod, random wishes, and a node on which
// actions take random time, outcomes arrive late, calls fail with and without
// effect, containers crash, sandboxes die, the runtime goes away and the agent
// is killed and forgets all that it knew. After a while everything heals; then
// the pod must come to where it should be, rest there, and in the end leave an
// empty node. Nothing runs beside anything else and no clock is read, so that
// a seed is the whole story:
//
//	go test ./test/sim -run Sim                      # 500 seeds
//	go test ./test/sim -run Sim -seed 4711           # one seed, with its trace
//	go test ./test/sim -run Sim -seed 4711 -without restarts,zombies
//	make sim N=100000                                # many
//	make mutate                                      # do the rules catch planted bugs?
//
// Reading order: life.go (what happens, in what order), pod.go (the pods),
// world.go and act.go (the truth, and what actions do to it), agent.go (the
// caller that Decide is owed, as node/podactor is one), check_*.go (the rules),
// mutants.go (the planted bugs).
package sim
