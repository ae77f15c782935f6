// Package podactor runs the pod machine of node/lifecycle for one pod: an
// inbox of events, one pure decision, and actions that run outside the actor.
// It declares the interfaces that the machine calls ([Engine], [Watcher],
// [Puller], [Mounter], [Allocator], [Cgroups], [Specs], [Hooks], ...); package
// node re-exports them as aliases, and node/wire fits nodekit's own parts to
// them. Anything that fits an interface can stand in.
//
// One actor owns all state of its pod. Calls go out through the seams; news
// comes in as values ([Actor.Poke], [Actor.Want], [Actor.Probe]); the status
// goes out through [StatusSink]. Nothing else shares memory with an actor.
package podactor
