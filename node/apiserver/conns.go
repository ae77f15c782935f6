package apiserver

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
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

// closeSilent closes the connections on which something was written since, and
// nothing has been read.
func (d *dialer) closeSilent(since time.Time) (n int) {
	var silent []*conn
	d.mu.Lock()
	for c := range d.open {
		if c.wrote.Load() >= since.UnixNano() && c.read.Load() < since.UnixNano() {
			silent = append(silent, c)
			delete(d.open, c)
		}
	}
	d.mu.Unlock()
	for _, c := range silent {
		c.Conn.Close()
	}
	return len(silent)
}

// conn knows when it was used, and leaves its dialer's list when it is closed.
type conn struct {
	net.Conn
	dialer      *dialer
	read, wrote atomic.Int64 // Unix time in nanoseconds
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.wrote.Store(time.Now().UnixNano())
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
