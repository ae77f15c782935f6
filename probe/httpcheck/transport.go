package httpcheck

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport goes straight to the pod, whatever proxy the environment names.
func newTransport(dial dialFunc, h2c bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(!h2c)
	protocols.SetHTTP2(true) // over TLS only, where servers choose
	protocols.SetUnencryptedHTTP2(h2c)
	return &http.Transport{
		DialContext:        dial,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // pods sign their certificates themselves
		DisableKeepAlives:  true,
		DisableCompression: true,
		Protocols:          &protocols,
	}
}

// resetting resets its connection instead of closing it. Whose FIN goes first
// keeps a socket in TIME_WAIT for a minute, and a node with many probes runs out
// of ports (k/k#89898). After a reset neither end keeps one: our FIN is never
// sent, and a server that closed first, as "Connection: close" asks it to, is
// let out of FIN_WAIT_2.
//
// What is cut off is nobody's loss. The linger time is set when the connection
// is given up, not before: by then the request, which is all that is ever sent,
// has been answered, or the check's time is over. A TLS or HTTP/2 goodbye may be
// lost; a server that still writes sees what any client does that hangs up.
type resetting struct{ net.Conn }

func (c resetting) Close() error {
	if tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // at worst one more TIME_WAIT
	}
	return c.Conn.Close()
}
