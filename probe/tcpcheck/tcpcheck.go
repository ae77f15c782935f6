package tcpcheck

import (
	"context"
	"errors"
	"net"

	"nodekit.dev/probe"
)

// Target is what to connect to.
type Target struct {
	// Address is "host:port".
	Address string
	// DialContext opens the connection, such as in a network namespace; nil for a
	// plain net.Dialer. It must end when its context does, and is called
	// concurrently if Check is.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
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
	dial := t.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", t.Address)
	if err != nil {
		return probe.Outcome{Result: probe.Failure, Output: err.Error()}
	}
	// Who sends the first FIN keeps a socket in TIME_WAIT for a minute. Nothing
	// was sent that a reset could cut off, so reset.
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // at worst one more TIME_WAIT
	}
	_ = conn.Close() // the answer is here already
	return probe.Outcome{Result: probe.Success}
}
