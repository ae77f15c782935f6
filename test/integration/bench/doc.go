// Package bench measures an agent against the bare CRI calls that its work
// amounts to, on one private containerd, in one run: `make bench`.
//
//	report, err := bench.Run(ctx, bench.Options{Pods: 20, Burst: 50, Log: log})
//	report.Print(os.Stdout)
//	if !report.OK() { ... }
//
// # How it measures
//
// A proxy between a first agent and the runtime records the requests that one
// pod's start and stop are made of. The bare pods then repeat these very
// requests, with names of their own, over the same socket: what the agent adds
// is all that differs. Bare pods and pods of the agent take turns, and each
// ratio is the median of the ratios of neighbours, so that a machine that is
// busy with something else slows down both sides of a ratio.
//
// Latency is measured on an agent inside this process (node/wire, the same
// parts as cmd/kubelet), from the moment a pod is handed over until its status
// says Ready; memory and CPU on cmd/kubelet in a process of its own.
package bench
