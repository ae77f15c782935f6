// Package shutdown will hold graceful node shutdown: signal sources, the order
// in which pods stop, and the inhibitor. Nothing is here yet (docs/scope.md).
package shutdown
