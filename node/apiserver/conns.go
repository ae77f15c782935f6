package apiserver

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialer makes connections and can close those that it made.
type dialer struct {
	dial dialFunc
	mu   sync.Mutex
	open map[*conn]struct{}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newDialer dials with dial; nil: TCP, for at most 30 s.
func newDialer(dial dialFunc) *dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &dialer{dial: dial, open: map[*conn]struct{}{}}
}

func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, dialer: d}
	d.mu.Lock()
	d.open[c] = struct{}{}
	d.mu.Unlock()
	return c, nil
}

// closeAll closes all connections; requests on them fail.
func (d *dialer) closeAll() (n int) {
	d.mu.Lock()
	open := d.open
	d.open = map[*conn]struct{}{}
	d.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}
	return len(open)
}

// conn leaves its dialer's list when it is closed.
type conn struct {
	net.Conn
	dialer *dialer
}

func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
