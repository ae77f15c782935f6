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
// The caller (node/podactor) owes the machine six things:
//
//   - it calls Decide whenever something changed and at Plan.Wake,
//   - it looks at the runtime where no look began since Plan.LookSince, and calls
//     Decide with what that brought, also where it is nothing new,
//   - it hands back Plan.Mem unchanged,
//   - it starts each action of Plan.Do at once, holds its key in Input.Busy
//     until the action returned, and puts what the action left behind into
//     Input.Seen in the same step in which the key leaves Busy,
//   - it records a failed action in Seen.Failed under its key, and removes the
//     record when an action of that key succeeds; an action that ended early
//     because Plan.Cancel named its key is no failure,
//   - Seen.Runtime never goes back: a look replaces another one only if it began
//     after that one was over, as of two that overlap either may have read first.
//     A container that was seen running and is not to be seen any more counts as
//     lost (exit code 137), and its policy decides.
//
// Losing Plan.Mem is safe at any time. What it costs: the postStart hook of a
// container that just started counts as done, crash back-offs are rebuilt from
// restart counts, and an event may be told twice.
//
// An action that ends well and leaves the world as it was is not repeated
// within a second, so a part that lies costs no tight loop.
//
// Where to read on: decide.go is the table of contents. observe.go makes what
// is the case out of what was seen and what is remembered, ending.go chooses
// whether and why the pod stops and raises the phase; prepare, images, volumes,
// sandbox, init, containers, restartall, stop and clean hold one concern each;
// status, containerstatus and conditions say it in the API's words.
package lifecycle
