// Package runtimemetrics counts what the agent asks of the container runtime:
// calls, pulls, relists and the stream of events.
//
//	m := runtimemetrics.New()
//	err := registry.Add(m.Collectors()...)
//	criConfig.Observer = m.Calls()
//	imagesConfig.Observer = m.Pulls()
//	observeConfig.Trace = m.Relists()
package runtimemetrics
