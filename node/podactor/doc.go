// Package podactor runs the pod machine of node/lifecycle for one pod: an
// inbox of events, one pure decision, and actions that run outside the actor.
// It declares the interfaces that the machine calls ([Engine], [Watcher],
// [Puller], [Mounter], [Allocator], [Cgroups], [Specs], [Hooks], ...); package
// node re-exports them as aliases, and node/wire fits nodekit's own parts to
// them. Anything that fits an interface can stand in.
//
//	actor, err := podactor.New(cfg, parts, want)
//	...
//	go func() { done <- actor.Run(ctx) }() // nil: the pod is gone
//	actor.Poke()                           // the runtime has news of it
//	actor.Want(want)                       // a new spec, or a stop
//
// One actor owns all state of its pod. Calls go out through the seams; news
// comes in as values ([Actor.Poke], [Actor.Want], [Actor.Probe]); the status
// goes out through [StatusSink]. Nothing else shares memory with an actor.
//
//	news ──▶ inbox ──▶ Decide ──▶ actions, each a task with its key
//	           ▲                      │ returned, failed or cancelled
//	           │                      ▼
//	           └─ result ◀── look at the pod in the runtime
//
// What callers can rely on:
//
//   - After an action that touches the runtime the actor reads its own pod, and
//     the action's key stays busy until a look that started after the action
//     ended came back. A look that fails is tried again; the pod waits, alone.
//   - Looks race, and an older one never replaces what a newer one brought.
//   - A failed action is tried again after 1 s, doubling to 60 s, unless its
//     error says otherwise (Reason, RetryAfter and Fatal; see internal/reasoned).
//   - A panic of a part is a failure of that action.
//   - When the context of Run ends, calls in flight are cancelled and containers
//     are left as they are.
package podactor
