// Package lifecycle is the pure pod machine: given what is wanted of a pod and
// what the world last said about it, [Decide] says what to do now. It does no
// I/O, reads no clock and keeps nothing between calls; equal inputs give equal
// plans, so every decision the agent ever took replays as a test.
//
//	       admit        sandbox + container        stop wanted, or all ended
//	Queued ─────▶ Preparing ─────▶ Running ─────────────▶ Stopping
//	   │              │               │                        │ no container runs
//	   │              └───────────────┴── any stop ──▶         ▼
//	   └── stop before start ────────────────────────▶     Cleaning ──▶ Finished
//
// The phase only rises. Why a pod stops is a reason beside it ([StopReason]).
//
// The caller (node/podactor) owes the machine four things:
//
//   - it calls Decide whenever something changed and at Plan.Wake,
//   - it hands back Plan.Mem unchanged,
//   - it starts each action of Plan.Do at once, holds its key in Input.Busy
//     until the action returned, and puts what the action left behind into
//     Input.Seen in the same step in which the key leaves Busy,
//   - it records a failed action in Seen.Failed under its key, and removes the
//     record when the action succeeds.
package lifecycle
