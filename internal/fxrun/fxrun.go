// Package fxrun runs the parts of an fx graph: a Run(ctx) method becomes a
// start and a stop hook in one line, each with a budget of its own.
//
// fx itself abandons the stop hooks that are left when its time is up, lets a
// panic end the process, and kills the start context after boot. A [Runner]
// gives each part a context that lives until its stop, always calls every
// stop, names what overran, and turns a panic into an error of that part.
package fxrun

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/fx"

	"nodekit.dev/internal/tasks"
)

// Runner starts and stops the parts of one agent. Use New.
type Runner struct {
	budget time.Duration
	failed chan error

	mu    sync.Mutex
	names []string
}

// New makes a runner that gives each part this long to stop.
func New(budget time.Duration) *Runner {
	return &Runner{budget: budget, failed: make(chan error, 1)}
}

// Failed tells the first part that ended by itself, with its error.
func (r *Runner) Failed() <-chan error { return r.failed }

// Names lists the parts in the order in which they were added.
func (r *Runner) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.names...)
}

// OverrunError names a part that did not stop within its budget.
type OverrunError struct {
	Part   string
	Budget time.Duration
}

func (e *OverrunError) Error() string {
	return fmt.Sprintf("%s: did not stop within %v", e.Part, e.Budget)
}

// Run makes a part live from start to stop. It is called inside the part's
// provider, so that a part that was replaced is never run.
func (r *Runner) Run(lc fx.Lifecycle, name string, run func(ctx context.Context) error) {
	r.note(name)
	p := &part{name: name, run: run, runner: r, done: make(chan struct{})}
	lc.Append(fx.Hook{OnStart: p.start, OnStop: p.stop})
}

// Close calls fn at stop, for parts that hold something but run nothing.
func (r *Runner) Close(lc fx.Lifecycle, name string, fn func() error) {
	r.note(name)
	lc.Append(fx.Hook{OnStop: func(ctx context.Context) error {
		return r.within(ctx, name, func(context.Context) error { return fn() })
	}})
}

func (r *Runner) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

// fail reports the first failure; later ones are consequences.
func (r *Runner) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// callerKey carries the context of the one who asked for the stop.
type callerKey struct{}

// Detach hides the end of ctx from fx, which would abandon the stop hooks that
// are left, while every part still sees it.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx)
}

// within calls fn as a named task and waits for it no longer than the budget.
func (r *Runner) within(ctx context.Context, name string, fn func(context.Context) error) error {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		ctx = caller
	}
	ctx, cancel := context.WithTimeout(ctx, r.budget)
	defer cancel()
	done := make(chan error, 1)
	group := tasks.New(ctx)
	group.Go(name, func(ctx context.Context) error {
		done <- tasks.Contain(name, func() error { return fn(ctx) })
		return nil
	})
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	case <-ctx.Done():
		return &OverrunError{Part: name, Budget: r.budget}
	}
}

type part struct {
	name   string
	run    func(ctx context.Context) error
	runner *Runner
	cancel context.CancelFunc
	done   chan struct{}
}

// start runs the part under a context that outlives fx's own start context.
func (p *part) start(start context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(start))
	p.cancel = cancel
	group := tasks.New(ctx)
	group.Go(p.name, func(ctx context.Context) error {
		defer close(p.done)
		err := tasks.Contain(p.name, func() error { return p.run(ctx) })
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return nil
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		p.runner.fail(fmt.Errorf("%s: %w", p.name, err))
		return nil
	})
	return nil
}

func (p *part) stop(ctx context.Context) error {
	p.cancel()
	return p.runner.within(ctx, p.name, func(ctx context.Context) error {
		select {
		case <-p.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// Guard wraps fx's lifecycle so that the hooks which vendors append by hand
// get the same budget, and so that one that hangs or panics does not keep the
// others from being called.
func (r *Runner) Guard(lc fx.Lifecycle) fx.Lifecycle { return &guarded{lc: lc, runner: r} }

type guarded struct {
	lc     fx.Lifecycle
	runner *Runner
}

func (g *guarded) Append(h fx.Hook) {
	start, stop := h.OnStart, h.OnStop
	name := callerOf(start, stop)
	if start != nil {
		h.OnStart = func(ctx context.Context) error {
			return tasks.Contain(name, func() error { return start(ctx) })
		}
	}
	if stop != nil {
		h.OnStop = func(ctx context.Context) error {
			return g.runner.within(ctx, name, stop)
		}
	}
	g.lc.Append(h)
}
