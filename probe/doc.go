// Package probe will hold the HTTP, TCP, gRPC and exec checks and their
// cadence, importable alone. Nothing is here yet: a pod that asks for a probe
// is refused with the path of that field until then (docs/scope.md).
package probe
