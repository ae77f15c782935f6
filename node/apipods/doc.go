// Package apipods is the source of the pods that the API server has bound to
// this node: one list, then a watch, for as long as the agent lives.
//
//	source, err := apipods.New(apipods.DefaultConfig("worker-1"), lane.Core(), writer, log)
//	parts.Sources = append(parts.Sources, node.Ordered[node.Source]{Name: source.Name(), Value: source})
//
//	list ──▶ watch ──▶ each copy of a pod ──▶ Copies   the status writer reconciles against it
//	  ▲        │                          └─▶ node     if it is news for the node; no mirror pods
//	  └────────┘ the server forgot where the watch was
//
// What callers can rely on:
//
//   - Nothing is sent to the node before a list succeeded: as long as the API
//     server is away, the node takes nothing for unwanted. A list that comes
//     after the first is compared by UID, so that a pod that was deleted and
//     made anew under its name while nobody watched is two pods.
//   - Copies hears of a pod before the node does, of every change, and of mirror
//     pods too; the node hears of what it may have to act on, and not of the
//     echo of its own status writes.
//   - A pod that reaches the node has the annotations of its source and of when
//     it was seen first; what the API server has under these names does not
//     count, so that no pod of the API server passes for a static one.
//   - Deletion is no removal: a pod with a deletionTimestamp is sent as it is, and
//     the node stops it. It is removed when the API server has no such pod.
//   - The server may be away at any time and for any length: a failed call is
//     repeated after a back-off with jitter, and Copies is told when the server
//     answers again.
package apipods
