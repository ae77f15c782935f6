// Package metrics is the registry of one agent and how it is shown, in the
// Prometheus format and with the names of the stock kubelet. The subpackages
// fill it: each has metrics of one part of the agent and gives the Observer
// that the part calls, since no part knows Prometheus.
//
//	all := metrics.New()
//	err := all.AddProcess() // process_* and go_*
//	pods := nodemetrics.New(nodemetrics.Config{NodeName: "edge-7"})
//	err = all.Add(pods.Collectors()...)
//	nodeConfig.Observer = pods.Observer()
//	mux.Handle("GET /metrics", all.Handler(log))
//
// Two agents in one process have two registries. A vendor adds collectors of
// its own with Add. The help text of each metric starts with its stability, as
// in the stock kubelet: "[ALPHA] ...".
package metrics
