package probe

import (
	"context"
	"net"
)

// DefaultUserAgent is what the stock kubelet of v1.37 sends over HTTP and gRPC.
const DefaultUserAgent = "kube-probe/1.37"

// OutputLimit is how much of an answer or of a command's output users are told,
// in bytes.
const OutputLimit = 10 << 10

// DialFunc opens a connection, such as in a network namespace. It must end when
// its context does, and is called concurrently.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Resetting is dial (nil: a plain net.Dialer) for connections that are reset,
// not closed, when they are given up. Whose FIN goes first keeps a socket in
// TIME_WAIT for a minute, and a node with many probes runs out of ports
// (k/k#89898). After a reset neither end keeps one: our FIN is never sent, and a
// server that closed first, as "Connection: close" asks it to, is let out of
// FIN_WAIT_2.
//
// What is cut off is nobody's loss: by then the request, which is all that is
// ever sent, has been answered, or the check's time is over. A goodbye of TLS or
// HTTP/2 may be lost; a server that still writes sees what any client does that
// hangs up.
func Resetting(dial DialFunc) DialFunc {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
			_ = tcp.SetLinger(0) // at worst one more TIME_WAIT
		}
		return conn, nil
	}
}
