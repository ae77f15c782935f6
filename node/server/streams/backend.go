package streams

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// dialTimeout bounds the way to the streaming server, which is on this
	// machine, up to its answer.
	dialTimeout = 30 * time.Second
	// maxRefusal is how much of a refusal is passed on, bytes.
	maxRefusal = 1 << 20
)

// backend is a connection to the streaming server that has been upgraded.
type backend struct {
	net.Conn
	buffered *bufio.Reader // what came with the answer, then the rest
	answer   *http.Response
}

func (b *backend) Read(p []byte) (int, error) { return b.buffered.Read(p) }

// connect asks the streaming server to upgrade. The request has the given
// method and headers and nothing else of the client's.
func connect(ctx context.Context, method string, target *url.URL, header http.Header) (*backend, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := dial(ctx, target)
	if err != nil {
		return nil, fmt.Errorf("error dialing backend: %w", err)
	}
	// What comes next does not look at ctx; when it ends the connection does.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	b, err := ask(conn, method, target, header)
	if err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	if !stop() {
		return nil, fmt.Errorf("error dialing backend: %w", ctx.Err())
	}
	return b, nil
}

func dial(ctx context.Context, target *url.URL) (net.Conn, error) {
	port := target.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[target.Scheme]
	}
	address := net.JoinHostPort(target.Hostname(), port)
	if target.Scheme == "https" {
		dialer := tls.Dialer{Config: &tls.Config{ServerName: target.Hostname(), MinVersion: tls.VersionTLS12}}
		return dialer.DialContext(ctx, "tcp", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// ask sends the request and reads the answer.
func ask(conn net.Conn, method string, target *url.URL, header http.Header) (*backend, error) {
	req := &http.Request{Method: method, URL: target, Host: target.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("error sending request: %w", err)
	}
	buffered := bufio.NewReader(conn)
	answer, err := http.ReadResponse(buffered, req)
	if err != nil {
		return nil, fmt.Errorf("error reading the backend's answer: %w", err)
	}
	switch {
	case answer.StatusCode == http.StatusSwitchingProtocols:
		return &backend{Conn: conn, buffered: buffered, answer: answer}, nil
	case answer.StatusCode < http.StatusBadRequest: // a redirect leads nowhere that we would go
		return nil, fmt.Errorf("invalid upgrade response: status code %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return nil, fmt.Errorf("error reading the backend's answer: %w", err)
	}
	return nil, &refusal{status: answer.StatusCode, contentType: answer.Header.Get("Content-Type"), body: body}
}
