package streams

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/websocket"
)

// The protocols.
const (
	commandV5 = "v5.channel.k8s.io"
	commandV4 = "v4.channel.k8s.io"

	tunnelPrefix = "SPDY/3.1+"
	tunnelSuffix = ".k8s.io"

	headerProtocol = "X-Stream-Protocol-Version"
)

// isTunnel says that a WebSocket protocol is SPDY within a WebSocket.
func isTunnel(protocol string) bool {
	return strings.HasPrefix(protocol, tunnelPrefix) && strings.HasSuffix(protocol, tunnelSuffix)
}

// spdyHeader asks a streaming server for SPDY, and in it for a protocol.
func spdyHeader(protocols ...string) http.Header {
	return http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}, headerProtocol: protocols}
}

// tunnel unwraps SPDY from a WebSocket.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, target *url.URL) {
	var inner []string
	for _, offer := range offers(r) {
		if isTunnel(offer) {
			inner = append(inner, strings.TrimPrefix(offer, tunnelPrefix))
		}
	}
	back, err := connect(r.Context(), http.MethodPost, target, spdyHeader(inner...))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer back.Close()
	chosen := cmp.Or(back.answer.Header.Get(headerProtocol), inner[0])
	accept(w, r, tunnelPrefix+chosen, func(client *websocket.Conn) { p.join(r.Context(), client, back) })
}

// accept answers a WebSocket client and returns when serve does. It tells the
// client itself where its handshake is not a valid one.
func accept(w http.ResponseWriter, r *http.Request, protocol string, serve func(*websocket.Conn)) {
	websocket.Server{
		Handshake: func(cfg *websocket.Config, _ *http.Request) error {
			cfg.Protocol = []string{protocol}
			return nil
		},
		Handler: func(client *websocket.Conn) {
			client.PayloadType = websocket.BinaryFrame
			serve(client)
		},
	}.ServeHTTP(w, r)
}
