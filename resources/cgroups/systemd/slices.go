package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/resources/cgroups"
)

// Config bounds the calls.
type Config struct {
	// JobWait is how long a start or stop of a slice may take, from the call to
	// systemd's word that it is done, and as long the connection before it.
	JobWait time.Duration
}

// Default is half a minute, as a machine that boots keeps systemd busy.
func Default() Config { return Config{JobWait: 30 * time.Second} }

// bus is what is asked of systemd; a *sd.Conn does it.
type bus interface {
	StartTransientUnitContext(ctx context.Context, name, mode string, properties []sd.Property, done chan<- string) (int, error)
	SetUnitPropertiesContext(ctx context.Context, name string, runtime bool, properties ...sd.Property) error
	StopUnitContext(ctx context.Context, name, mode string, done chan<- string) (int, error)
	Connected() bool
	Close()
}

// Slices makes slices for package cgroups. Its methods are safe for concurrent
// use. Use New.
type Slices struct {
	cfg  Config
	dial func(context.Context) (bus, error)
	log  *slog.Logger

	mu   sync.Mutex
	conn bus // nil: none yet
}

var _ cgroups.Slices = (*Slices)(nil)

// New makes no connection yet.
func New(cfg Config, log *slog.Logger) *Slices {
	return &Slices{cfg: cfg, dial: func(ctx context.Context) (bus, error) { return dial(ctx, cfg.JobWait) }, log: log}
}

// dial connects within wait. A connection ends with its context, and this one
// outlives the call that needs it first.
func dial(ctx context.Context, wait time.Duration) (bus, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	inTime := time.AfterFunc(wait, cancel)
	conn, err := sd.NewWithContext(ctx)
	if !inTime.Stop() && err == nil {
		conn.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return connection{conn, cancel}, nil
}

// connection ends its context as well.
type connection struct {
	*sd.Conn
	cancel func()
}

func (c connection) Close() {
	c.Conn.Close()
	c.cancel()
}

// Run closes the connection once ctx ends.
func (s *Slices) Run(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	return ctx.Err()
}

// Ensure makes the slice, or sets the limits of one that is there.
func (s *Slices) Ensure(ctx context.Context, name string, w cgroups.Wanted, unified bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.JobWait)
	defer cancel()
	conn, err := s.connected(ctx)
	if err != nil {
		return failed("start", name, err)
	}
	limits := limitProperties(w, unified)
	err = await(ctx, func(done chan<- string) (int, error) {
		return conn.StartTransientUnitContext(ctx, name, "replace", append(unitProperties(unified), limits...), done)
	})
	if isNamed(err, "org.freedesktop.systemd1.UnitExists") {
		err = conn.SetUnitPropertiesContext(ctx, name, true, limits...)
	}
	return failed("start", name, err)
}

// Remove stops the slice. Without processes that is at once.
func (s *Slices) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.JobWait)
	defer cancel()
	conn, err := s.connected(ctx)
	if err != nil {
		return failed("stop", name, err)
	}
	err = await(ctx, func(done chan<- string) (int, error) { return conn.StopUnitContext(ctx, name, "replace", done) })
	if isNamed(err, "org.freedesktop.systemd1.NoSuchUnit") {
		err = nil
	}
	return failed("stop", name, err)
}

// connected is the connection there is, or a new one.
func (s *Slices) connected(ctx context.Context) (bus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		if s.conn.Connected() {
			return s.conn, nil
		}
		s.conn.Close()
		s.conn = nil
		s.log.Warn("the connection to systemd is lost: making a new one")
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("no connection to systemd (is it this machine's init, and the bus up?): %w", err)
	}
	s.conn = conn
	return conn, nil
}

// await starts a job and waits until systemd says how it ended.
func await(ctx context.Context, start func(done chan<- string) (int, error)) error {
	done := make(chan string, 1) // the connection would block on a reader that left
	if _, err := start(done); err != nil {
		return err
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("systemd's job ended as %q", result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("systemd's job does not end: %w", context.Cause(ctx))
	}
}

func isNamed(err error, name string) bool {
	var e dbus.Error
	return errors.As(err, &e) && e.Name == name
}

func failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return reasoned.New("SystemdSlice", fmt.Errorf("%s %s: %w", what, name, err))
}
