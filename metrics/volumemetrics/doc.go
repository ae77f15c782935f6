// Package volumemetrics measures what the agent does with volumes, and shows
// what they hold.
//
//	m := volumemetrics.New(volumemetrics.Config{Claims: ..., Census: ...})
//	err := registry.Add(m.Collectors()...)
//	volumeConfig.Observer = m.Observer()     // Linux, as volumes are; elsewhere call Done
//	statsConfig.Observer = m.StatsObserver() // the same
package volumemetrics
