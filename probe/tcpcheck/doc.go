// Package tcpcheck checks that a TCP port takes connections. It needs no probe
// manager:
//
//	got := tcpcheck.Check(ctx, tcpcheck.Target{Address: "10.0.0.7:5432"})
//	fmt.Println(got.Result, got.Output)
//
// For the tcpSocket handler of a pod, [TargetOf] finds host and port. The output
// of a failure is the dial error, such as "dial tcp 10.0.0.7:5432: connect:
// connection refused", or "...: i/o timeout" when the context's deadline came.
//
// # Sockets
//
// The connection is reset, not closed, so that no check leaves a socket in
// TIME_WAIT, neither here nor on a server of the same host. A server sees a
// connection that was open and then reset; it may see none at all if it is slow
// to accept.
package tcpcheck
