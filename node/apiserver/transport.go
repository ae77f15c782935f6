package apiserver

import (
	"fmt"
	"net/http"
	"sync"

	"nodekit.dev/internal/kubeclient"
)

// connections is one set of connections with what logs in on them. It is built
// by the first request, because that reads files, and by each further request
// for as long as it can not be built.
type connections struct {
	cfg    Config
	dialer *dialer

	mu   sync.Mutex
	conn *kubeclient.Conn // nil: not built yet
}

// newConnections calls died when a connection is found dead by the kernel.
func newConnections(cfg Config, died func()) *connections {
	d := newDialer(cfg.REST.Dial)
	if !cfg.HTTP2.Disabled {
		d.patience, d.died = ackPatience, died
	}
	return &connections{cfg: cfg, dialer: d}
}

// RoundTrip makes a request once there are credentials for it.
func (c *connections) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.cfg.Credentials != nil {
		select {
		case <-c.cfg.Credentials.Ready():
		case <-req.Context().Done():
			return nil, fmt.Errorf("no client certificate for the API server yet: %w", req.Context().Err())
		}
	}
	conn, err := c.built()
	if err != nil {
		return nil, err
	}
	return conn.RoundTrip(req)
}

func (c *connections) built() (*kubeclient.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		return c.conn, nil
	}
	opts := kubeclient.Options{
		Dial: c.dialer.DialContext, UserAgent: c.cfg.UserAgent,
		HTTP1: c.cfg.HTTP2.Disabled, ReadIdle: c.cfg.HTTP2.ReadIdle, PingTimeout: c.cfg.HTTP2.PingTimeout,
	}
	if c.cfg.Credentials != nil {
		opts.Certificate = c.cfg.Credentials.Client
	}
	conn, err := kubeclient.Connect(c.cfg.REST, opts)
	c.conn = conn
	return conn, err
}

// closeIdle closes connections that no request is on.
func (c *connections) closeIdle() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.CloseIdle()
	}
}

// closeAll closes every connection; requests on them fail.
func (c *connections) closeAll() int {
	c.closeIdle()
	return c.dialer.closeAll()
}
