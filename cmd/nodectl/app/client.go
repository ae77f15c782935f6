package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// client asks one agent.
type client struct {
	socket string
	http   *http.Client
}

func newClient(socket string) client {
	return client{socket: socket, http: &http.Client{
		Timeout: callTimeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", socket)
			},
		},
	}}
}

// get is the body of a path.
func (c client) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("agent on %s: %w", c.socket, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("agent on %s: %s: %s", c.socket, resp.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// getJSON decodes the body of a path.
func (c client) getJSON(ctx context.Context, path string, into any) error {
	body, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("agent on %s: GET %s: %w (is nodectl as new as the agent?)", c.socket, path, err)
	}
	return nil
}

// explain says what to do about a failed call.
func (c client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no socket %s: is the agent running? If it has another root directory, say --root-dir or --socket", c.socket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody answers on %s: the agent that made the socket is gone", c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the socket %s is for root only: run nodectl as root", c.socket)
	}
	return fmt.Errorf("agent on %s: %w", c.socket, err)
}

// printJSON writes JSON for machines, indented.
func (e *env) printJSON(data []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := out.WriteTo(e.out)
	return err
}
