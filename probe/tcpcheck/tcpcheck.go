package tcpcheck

import (
	"context"
	"errors"

	"nodekit.dev/probe"
)

// Target is what to connect to.
type Target struct {
	// Address is "host:port".
	Address string
	// DialContext opens the connection; nil for a plain net.Dialer.
	DialContext probe.DialFunc
}

// TargetOf is what a pod's tcpSocket handler asks for. It fails for a handler
// without tcpSocket, for a pod without an IP, and for a port that is none.
func TargetOf(t probe.Target) (Target, error) {
	socket := t.Handler.TCPSocket
	if socket == nil {
		return Target{}, errors.New("the handler has no tcpSocket")
	}
	address, err := t.Address(socket.Host, socket.Port)
	return Target{Address: address}, err
}

// Check connects and hangs up. A connection that could not be opened is a
// Failure with the dial error as its output. It ends when ctx does, and is safe
// for concurrent use.
func Check(ctx context.Context, t Target) probe.Outcome {
	conn, err := probe.Resetting(t.DialContext)(ctx, "tcp", t.Address)
	if err != nil {
		return probe.Outcome{Result: probe.Failure, Output: err.Error()}
	}
	_ = conn.Close() // the answer is here already
	return probe.Outcome{Result: probe.Success}
}
