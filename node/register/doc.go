// Package register makes the machine a node of the cluster: it creates or finds
// the Node object, keeps its status, and renews its lease.
//
//	r, err := register.New(cfg, register.Parts{
//		Core:         client.Lane(apiserver.LaneNodeStatus).Core(),
//		Coordination: client.Lane(apiserver.LaneLease).Coordination(),
//		Machine:      func() (resources.Machine, error) { return machine.Read(machine.Host(rootDir)) },
//		Runtime:      observer.Status,
//		Event:        recorder.NodeEvent,
//	})
//	go r.Run(ctx)  // through internal/tasks
//	r.Kick()       // something changed: tell it now
//	n := r.Node()  // as it is known now, with or without the API server
//
// # How the status comes about
//
//	read the Node ─▶ setters, in order ─▶ compare ─▶ changed, or five minutes old: patch
//	                                                        │
//	                                  events of what changed ◀┘
//
// Setters fill in the Node; each does one thing. Vendors add their own, put one
// in the place of a stock one by its name (SetAddresses and so on), or add
// resources with a Contributor. They leave the times of conditions and events
// alone: both follow from what changed, by pure functions.
//
// # Rules for callers
//
//   - Nothing waits for Run: an API server that is away is tried for as long as
//     it takes, and Node answers all the while.
//   - Call Kick when the runtime's health, a pressure or a check changed, when
//     the watch of the Node saw something, and when the first word of the runtime
//     is there. Without it, a change is noticed within UpdateEvery.
//   - The lease has a loop of its own, which no setter can hold up.
//   - A Node that was deleted stays so until an agent starts anew, as with the
//     stock kubelet.
//
// The lists, messages and numbers are the stock kubelet's; where this package
// does something else, docs/behaviour.md says so.
package register
