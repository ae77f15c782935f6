// Package nodemetrics counts pods and containers of an agent: how many there
// are, how many were started and ended, and how long pods took to run.
//
//	m := nodemetrics.New(nodemetrics.Config{NodeName: "edge-7", Pods: func() []node.PodView { return n.Pods() }})
//	err := registry.Add(m.Collectors()...)
//	nodeConfig.Observer = m.Observer()
//
// What is counted when asked (running pods and containers) comes from
// Config.Pods; the rest from the Observer, which does not block.
package nodemetrics
