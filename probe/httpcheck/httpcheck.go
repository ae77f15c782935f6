// Package httpcheck checks that an HTTP server answers a GET with a status
// from 200 to 399.
package httpcheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"nodekit.dev/probe"
)

const (
	bodyLimit    = 10 << 10 // bytes of an answer that are read
	maxRedirects = 10
)

// DialFunc opens a connection, such as net.Dialer.DialContext or one that
// enters a network namespace first. It must end when its context does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Target is what to ask.
type Target struct {
	// URL has the scheme http or https. Certificates are not checked.
	URL *url.URL
	// Header is sent as it is; its Host replaces the URL's. See [Header].
	Header http.Header
	// H2C speaks HTTP/2 without TLS; for the scheme http only.
	H2C bool
	// Dial opens the connection; nil for a plain net.Dialer.
	Dial DialFunc
}

// Check asks once. It ends when ctx does. A missing answer is a Failure with
// the client's error as output. Redirects are followed on the same host name
// only; one to another host is a Warning.
func Check(ctx context.Context, t Target) probe.Outcome {
	transport := newTransport(t)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL.String(), nil)
	if err != nil {
		return probe.Outcome{Err: err}
	}
	req.Header = t.Header.Clone()
	req.Host = t.Header.Get("Host")
	client := &http.Client{Transport: transport, CheckRedirect: followSameHost}
	resp, err := client.Do(req)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written; the answer is here
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
	if err != nil {
		return probe.Outcome{Result: probe.Failure, Output: err.Error()}
	}
	return judge(resp.StatusCode, string(body))
}

func judge(status int, body string) probe.Outcome {
	switch {
	case status < http.StatusOK || status >= http.StatusBadRequest:
		return probe.Outcome{Result: probe.Failure, Output: fmt.Sprintf("HTTP probe failed with statuscode: %d", status)}
	case status >= http.StatusMultipleChoices:
		return probe.Outcome{Result: probe.Warning, Output: "Probe terminated redirects, Response body: " + body}
	}
	return probe.Outcome{Result: probe.Success, Output: body}
}

// failed adds what users know from clients whose own timeout ended a request:
// here the context's did.
func failed(err error) probe.Outcome {
	text := err.Error()
	if asked := (*url.Error)(nil); errors.As(err, &asked) && errors.Is(asked.Err, context.DeadlineExceeded) {
		text += " (Client.Timeout exceeded while awaiting headers)"
	}
	return probe.Outcome{Result: probe.Failure, Output: text}
}

// newTransport goes straight to the pod, whatever proxy the environment names.
func newTransport(t Target) *http.Transport {
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	var protocols http.Protocols
	protocols.SetHTTP1(!t.H2C)
	protocols.SetHTTP2(!t.H2C)
	protocols.SetUnencryptedHTTP2(t.H2C)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return lingerless{conn}, nil
		},
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // pods sign their certificates themselves
		DisableKeepAlives:  true,
		DisableCompression: true,
		Protocols:          &protocols,
	}
}

// lingerless resets its connection instead of closing it: no end of it then
// waits a minute in TIME_WAIT, not even a server on this host that closed first.
// The request is all that is ever sent, and its answer has come by then; a
// server that still writes sees a reset, as it would when it writes to any
// client that hung up.
type lingerless struct{ net.Conn }

func (c lingerless) Close() error {
	if tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // at worst one more TIME_WAIT
	}
	return c.Conn.Close()
}

// followSameHost keeps a pod from sending the agent elsewhere: the redirect
// itself is then the answer.
func followSameHost(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

// Header adds to own, which it does not change, the User-Agent and an Accept
// of everything where own has none. An empty own value keeps the header out.
func Header(own http.Header, userAgent string) http.Header {
	out := own.Clone()
	if out == nil {
		out = http.Header{}
	}
	if _, ok := out["User-Agent"]; !ok {
		out.Set("User-Agent", userAgent) // net/http sends no empty one
	}
	if have, ok := out["Accept"]; !ok {
		out.Set("Accept", "*/*")
	} else if have[0] == "" {
		out.Del("Accept")
	}
	return out
}
