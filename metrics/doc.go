// Package metrics will hold registries, the metric endpoints and the stats
// summary. The parts already report through their Observer structs, which it
// will fill. Nothing is here yet (docs/scope.md).
package metrics
