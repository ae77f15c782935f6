// Package bench measures what events cost an agent among many pods, on a
// runtime in memory: the node with its actors and everything between, without
// a container runtime, so that 10,000 pods fit a laptop.
//
//	costs, err := bench.Measure(ctx, bench.Options{Sizes: []int{1000, 10_000}})
//
// `make bench` prints them; the tests here hold what does not depend on the
// machine (calls to the runtime, allocations) on smaller crowds.
package bench
