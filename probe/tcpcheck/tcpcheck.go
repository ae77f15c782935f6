// Package tcpcheck checks that a TCP port takes connections.
package tcpcheck

import (
	"context"
	"net"

	"nodekit.dev/probe"
)

// DialFunc opens a connection, such as net.Dialer.DialContext or one that
// enters a network namespace first. It must end when its context does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Target is what to connect to.
type Target struct {
	// Address is "host:port".
	Address string
	// Dial opens the connection; nil for a plain net.Dialer.
	Dial DialFunc
}

// Check connects and hangs up. A connection that could not be opened is a
// Failure with the dial error as its output. It ends when ctx does.
func Check(ctx context.Context, t Target) probe.Outcome {
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", t.Address)
	if err != nil {
		return probe.Outcome{Result: probe.Failure, Output: err.Error()}
	}
	// Who closes first keeps a socket in TIME_WAIT for a minute. Nothing was sent
	// that a reset could cut off, so reset.
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // at worst one more TIME_WAIT
	}
	_ = conn.Close() // the answer is here already
	return probe.Outcome{Result: probe.Success}
}
