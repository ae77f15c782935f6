// Package status writes the statuses of pods to the API server: one writer per
// node, which keeps the API server's copy of each pod equal to what the node
// says, deletes what the node is done with, and keeps a mirror pod for each
// static pod.
//
//	writer, err := status.New(status.DefaultConfig("worker-1"), status.Parts{API: lane.Core(), Log: log})
//	parts.StatusSinks = append(parts.StatusSinks, writer)     // what the node says
//	source, err := apipods.New(cfg, lane.Core(), writer, log) // what the API server has
//	n, err := node.New(cfg, parts)
//	writer.Attach(n)
//	go writer.Run(ctx)
//
//	node ── PodStatus ──▶ ┌──────┐   next: a pure decision   ┌──────────────────────┐
//	                      │ item │ ─────────────────────────▶│ patch, delete, create│─▶ API server
//	apipods ── PodSeen ─▶ └──────┘   per pod, per mirror     └──────────────────────┘
//
// What callers can rely on:
//
//   - A change is written at once. One call per pod is in flight; what changes
//     meanwhile is written after it, the newest state only. What others wait for
//     (ready or not, ended, gone) goes before what is merely interesting.
//   - Nothing is written of a pod before the node has looked at it, and nothing
//     that the API server has already: an agent that is killed and started again
//     writes nothing about a pod that runs as before.
//   - Patches carry the pod's UID, so that a pod made anew under the name is
//     never hit. A patch that changes the phase holds only for the copy that it
//     was made from: a phase that others set is not run over.
//   - A terminal phase, the start time and the transition time of a condition
//     that did not change are never taken back. Conditions of others, and the
//     fields of others, are left alone.
//   - A pod is deleted from the API server (grace 0, by its UID) once it is asked
//     to go there, its phase there is terminal, and the node says that nothing
//     of it is left (lifecycle.Finished).
//   - A mirror pod is made anew when somebody deletes it, replaced when the static
//     pod is another one, and deleted once nothing of the static pod is left. One
//     whose static pod nobody named goes only after every source has reported.
//   - A mirror does not show what its static pod has of ConfigMaps and Secrets: the
//     API server would refuse it. Its annotation nodekit.dev/local-objects tells.
//   - While the API server is away everything is tried again with back-off and
//     jitter, and at once when [Writer.InSync] says that it answers.
package status
