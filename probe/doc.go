// Package probe checks containers (and anything else that answers HTTP, TCP,
// gRPC or a command) again and again, and says what changed. It is importable
// alone. The checks themselves are in its subpackages; checks.Default is the
// set of all.
package probe
