package httpcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"nodekit.dev/internal/podhttp"
	"nodekit.dev/probe"
)

// Config are the settings of a Checker.
type Config struct {
	// UserAgent is sent where a target has none; empty: probe.DefaultUserAgent.
	UserAgent string
	// DialContext opens connections; nil for a plain net.Dialer.
	DialContext probe.DialFunc
}

// Checker makes checks. It keeps nothing between them and is safe for
// concurrent use.
type Checker struct{ cfg Config }

// New is a Checker with those settings.
func New(cfg Config) *Checker {
	if cfg.UserAgent == "" {
		cfg.UserAgent = probe.DefaultUserAgent
	}
	cfg.DialContext = probe.Resetting(cfg.DialContext)
	return &Checker{cfg: cfg}
}

// Check asks once, and ends when ctx does. A missing answer is a Failure with
// the client's error as output; see the package's table.
func (c *Checker) Check(ctx context.Context, t Target) probe.Outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL.String(), nil)
	if err != nil {
		return probe.Outcome{Err: err}
	}
	req.Header = podhttp.Header(t.Headers, c.cfg.UserAgent)
	req.Host = req.Header.Get("Host")
	// What the check opened ends with it, but not before: an answer that comes
	// at the last moment is one, and an error is the client's own.
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	// A transport of its own: to end what it left behind must not touch others.
	transport := newTransport(c.dialer(ctx, alive), t.H2C)
	defer transport.CloseIdleConnections() // ends handshakes that nobody waits for any more
	client := &http.Client{Transport: transport, CheckRedirect: podhttp.FollowSameHost}
	resp, err := client.Do(req)
	if err != nil {
		return failure(err, "Client.Timeout exceeded while awaiting headers")
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written; the answer is here
	return judge(resp)
}

// dialer opens connections until ctx ends, and closes them when alive does. The
// transport alone would let a dial go on, in case a later request can use it; an
// HTTP/2 connection that was ready just after its request gave up would stay in
// the pool as long as the server lets it.
func (c *Checker) dialer(ctx, alive context.Context) probe.DialFunc {
	return func(_ context.Context, network, address string) (net.Conn, error) {
		conn, err := c.cfg.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(alive, func() { _ = conn.Close() }) // most are closed by then
		return conn, nil
	}
}

// judge reads the body only where it is told to users: a failure is one however
// slow the rest of it comes.
func judge(resp *http.Response) probe.Outcome {
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusBadRequest {
		return probe.Outcome{Result: probe.Failure, Output: fmt.Sprintf("HTTP probe failed with statuscode: %d", resp.StatusCode)}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, probe.OutputLimit))
	if err != nil {
		return failure(err, "Client.Timeout or context cancellation while reading body")
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return probe.Outcome{Result: probe.Warning, Output: "Probe terminated redirects, Response body: " + string(body)}
	}
	return probe.Outcome{Result: probe.Success, Output: string(body)}
}

// failure adds to a timeout the words that users know: they come from clients
// with a timeout of their own, where ours has its context's.
func failure(err error, onTimeout string) probe.Outcome {
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text += " (" + onTimeout + ")"
	}
	return probe.Outcome{Result: probe.Failure, Output: text}
}
