// Package node is the agent without its wiring: it takes pods from sources,
// gives each pod UID an actor (node/podactor) that runs the pod machine
// (node/lifecycle), and publishes what the actors say.
//
//	n, err := node.New(cfg, node.Parts{
//		Engine: engine, Watcher: watcher, Puller: puller, Mounter: mounter, Specs: specs,
//		Sources:     []node.Ordered[node.Source]{{Name: "file", Value: manifests}},
//		Hooks:       []node.Ordered[node.Hook]{{Name: "acme", Value: hook}},
//		StatusSinks: []node.StatusSink{sink},
//	})
//	...
//	err = n.Run(ctx) // until ctx ends; containers run on
//
// [New] takes every part through an interface ([Parts]); node/wire and
// node/nodefx put the defaults together.
//
//	sources ──▶ mutators ──▶ dispatcher ──▶ one actor per pod ──▶ sinks
//	                             ▲  hints, orphans     │ ▲
//	                             └──────── runtime ◀───┘ └─ admitters, hooks
//
// What callers can rely on:
//
//   - A pod belongs to the first source that names it. Sources that fail are
//     started again; a panic of a vendor's part is an error with its name.
//   - Two pods of one UID, or of one static name, never run at the same time:
//     the later one waits (Queued) until the earlier one is gone. Of a row of
//     rapid updates only the last one runs.
//   - Pods that nobody wants go once Config.ReadyWhen is content, by what is
//     written on their containers. Before that they are left alone.
//   - A runtime that is slow or dead for one pod holds up that pod only.
//   - The cost of an event does not depend on the number of pods, except for
//     whole-set updates, lost hints and a change of the network's state.
//
// What parts must keep to: calls end soon after their context does, since Run
// waits for them; sinks, mutators and observers do not block.
package node
