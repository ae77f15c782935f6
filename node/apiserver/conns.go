package apiserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ackPatience is how long what was written may stay without the other kernel's
// ACK. It is what tells packets that vanish from a server that is slow, so it
// may be shorter than HTTP2.PingTimeout: with the stock times, a connection on
// which only a ping is written is dead 40 s after its last packet, not 45.
const ackPatience = 10 * time.Second

// dialer makes connections and can close those that it made.
type dialer struct {
	dial dialFunc
	// patience is the connections' TCP_USER_TIMEOUT; 0: the kernel's.
	patience time.Duration
	// died is called when the kernel gave a connection up; nil: nobody asks.
	died func()
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

// limitAcks bounds how long packets may vanish (TCP_USER_TIMEOUT, tcp(7)).
// Connections of another kind, and kernels that refuse, keep their own times.
func limitAcks(raw net.Conn, patience time.Duration) {
	tcp, ok := raw.(*net.TCPConn)
	if !ok || patience == 0 {
		return
	}
	if socket, err := tcp.SyscallConn(); err == nil {
		_ = socket.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patience.Milliseconds()))
		})
	}
}

func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	limitAcks(raw, d.patience)
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
	c.noteDeath(err)
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.wrote.Store(time.Now().UnixNano())
	n, err := c.Conn.Write(b)
	c.noteDeath(err)
	return n, err
}

// noteDeath is for the errors of Read and of Write: the kernel tells only one.
func (c *conn) noteDeath(err error) {
	if errors.Is(err, unix.ETIMEDOUT) && c.dialer.died != nil {
		c.dialer.died()
	}
}

func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
