package iptables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"nodekit.dev/internal/tasks"
)

// Runner runs a program of the host. Output is what it wrote; err says that it
// did not run to its end. It may block until ctx ends and is called
// concurrently. internal/command has the default.
type Runner interface {
	Run(ctx context.Context, name string, args ...string) (exit int, output []byte, err error)
}

// Config is how often to look. Default has the stock values.
type Config struct {
	// Every is the time between two looks at the canary, and between two tries
	// to make what could not be made.
	Every time.Duration
	// A flush goes table by table: FlushWait is how long to wait until it has
	// reached all of them, FlushLook how often to look meanwhile.
	FlushWait time.Duration
	FlushLook time.Duration
	// Timeout bounds one command, which waits up to 5 s for the lock of
	// iptables itself.
	Timeout time.Duration
}

// Default looks once a minute.
func Default() Config {
	return Config{Every: time.Minute, FlushWait: 5 * time.Second, FlushLook: 100 * time.Millisecond, Timeout: time.Minute}
}

// Validate names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Every", c.Every}, {"FlushWait", c.FlushWait}, {"FlushLook", c.FlushLook}, {"Timeout", c.Timeout}} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: %v must be above 0", d.field, d.value))
		}
	}
	return errors.Join(errs...)
}

// Keeper makes the chains and makes them again. Use New.
type Keeper struct {
	cfg    Config
	runner Runner
	log    *slog.Logger
	ran    atomic.Bool
}

// New checks the configuration. Log may be nil.
func New(cfg Config, runner Runner, log *slog.Logger) (*Keeper, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("iptables: %w", err)
	}
	if runner == nil {
		return nil, errors.New("iptables: no runner of commands")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{cfg: cfg, runner: runner, log: log}, nil
}

// Run keeps the chains until ctx ends and returns its error. What fails is
// logged and tried again. It may be called once.
func (k *Keeper) Run(ctx context.Context) error {
	if k.ran.Swap(true) {
		return errors.New("iptables: Run was called before; make a new keeper with iptables.New")
	}
	group := tasks.New(ctx)
	var why []error
	for _, f := range []family{{command: "iptables", protocol: "IPv4", firewall: true}, {command: "ip6tables", protocol: "IPv6"}} {
		t := tables{family: f, runner: k.runner, timeout: k.cfg.Timeout}
		if err := t.present(ctx); err != nil {
			why = append(why, err)
			continue
		}
		group.Go("iptables-"+f.protocol, func(ctx context.Context) error { return k.keep(ctx, t) })
	}
	if len(why) == 2 && ctx.Err() == nil {
		k.log.Warn("No iptables support on this system; not creating the KUBE-IPTABLES-HINT chain", "err", errors.Join(why...))
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("iptables: %w", err)
	}
	<-ctx.Done()
	return ctx.Err()
}

// keep makes the chains of one family, and again after each flush.
func (k *Keeper) keep(ctx context.Context, t tables) error {
	defer k.removeCanaries(ctx, t)
	told := false
	for ctx.Err() == nil {
		err := t.ensure(ctx)
		if err == nil {
			err = t.ensureCanaries(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil && !told:
			k.log.Warn("Failed to initialize iptables rules; trying again", "protocol", t.protocol, "err", err)
			told = true
		case err == nil:
			k.log.Info("Initialized iptables rules.", "protocol", t.protocol)
			told = false
		}
		if err != nil {
			pause(ctx, k.cfg.Every)
			continue
		}
		k.untilFlushed(ctx, t)
	}
	return ctx.Err()
}

// untilFlushed returns when the canary of the first table is gone, and those of
// the others too, or are not going to be.
func (k *Keeper) untilFlushed(ctx context.Context, t tables) {
	for t.hasCanary(ctx, canaryTables()[0]) {
		if !pause(ctx, k.cfg.Every) {
			return
		}
	}
	for deadline := time.Now().Add(k.cfg.FlushWait); ctx.Err() == nil; {
		left := false
		for _, table := range canaryTables()[1:] {
			left = left || t.hasCanary(ctx, table)
		}
		if !left {
			return
		}
		if time.Now().After(deadline) {
			k.log.Info("Inconsistent iptables state detected", "protocol", t.protocol)
			return
		}
		pause(ctx, k.cfg.FlushLook)
	}
}

// removeCanaries undoes what means nothing without this agent.
func (k *Keeper) removeCanaries(ctx context.Context, t tables) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.cfg.FlushWait)
	defer cancel()
	if err := t.deleteCanaries(ctx); err != nil {
		k.log.Debug("canary chains are left over", "protocol", t.protocol, "err", err)
	}
}

// pause returns false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
