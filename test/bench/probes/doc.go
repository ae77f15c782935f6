// Package probes measures package probe with thousands of probes against real
// servers on loopback, which are another process:
//
//	got, err := probes.Measure(ctx, probes.Options{Servers: "/path/of/servers"})
//
// The program of the servers is in the folder servers.
package probes
