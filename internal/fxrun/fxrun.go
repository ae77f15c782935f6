// Package fxrun runs the parts of an fx graph: a Run(ctx) method becomes a
// start and a stop hook in one line, each with a budget of its own.
//
//	func newPart(lc fx.Lifecycle, r *fxrun.Runner) *part {
//		p := &part{}
//		r.Run(lc, "part", p.Run)
//		return p
//	}
//
// fx itself abandons the stop hooks that are left when its time is up, lets a
// panic end the process, and kills the start context after boot. A [Runner]
// gives each part a context that lives until its stop, always calls every
// stop, names what overran, and turns a panic into an error of that part.
package fxrun

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/fx"
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

// OverrunError names a part that did not stop in time.
type OverrunError struct {
	Part string
	// Waited is the part's budget, or less where the caller had less time.
	Waited time.Duration
}

func (e *OverrunError) Error() string {
	return fmt.Sprintf("%s: did not stop within %v", e.Part, e.Waited)
}

// Run makes a part live from start to stop. It is called inside the part's
// provider, so that a part that was replaced is never run.
func (r *Runner) Run(lc fx.Lifecycle, name string, run func(ctx context.Context) error) {
	r.RunAtLeast(lc, name, 0, run)
}

// RunAtLeast is Run for a part whose stop may take that long even where the
// budget of the others is smaller.
func (r *Runner) RunAtLeast(lc fx.Lifecycle, name string, budget time.Duration, run func(ctx context.Context) error) {
	r.note(name)
	p := &part{name: name, run: run, runner: r, budget: max(budget, r.budget), done: make(chan struct{})}
	unguarded(lc).Append(fx.Hook{OnStart: p.start, OnStop: p.stop})
}

// Hold calls open at start, where it is not nil, and shut at stop, for parts
// that hold something but run nothing. Shut is called only after an open that
// succeeded.
func (r *Runner) Hold(lc fx.Lifecycle, name string, open, shut func(context.Context) error) {
	r.note(name)
	unguarded(lc).Append(r.hook(name, open, shut))
}

// hook bounds and contains both functions, each of which may be nil.
func (r *Runner) hook(name string, start, stop func(context.Context) error) (h fx.Hook) {
	if start != nil {
		h.OnStart = func(ctx context.Context) error { return begin(ctx, name, start) }
	}
	if stop != nil {
		h.OnStop = func(ctx context.Context) error { return within(ctx, name, r.budget, stop) }
	}
	return h
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
