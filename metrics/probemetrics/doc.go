// Package probemetrics counts the checks of containers, with the series that the
// stock kubelet shows at /metrics/probes.
//
//	m := probemetrics.New()
//	err := registry.Add(m.Collectors()...)
//	probeConfig.Observers = append(probeConfig.Observers, m.Observer())
package probemetrics
