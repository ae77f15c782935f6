package fxrun

import (
	"context"
	"errors"
	"time"

	"nodekit.dev/internal/tasks"
)

// part is one Run(ctx) between its start and its stop.
type part struct {
	name   string
	run    func(ctx context.Context) error
	runner *Runner
	budget time.Duration
	cancel context.CancelFunc
	done   chan struct{}
	late   error // what went wrong after the stop was asked for; read after done
}

// start runs the part under a context that outlives the one of the start.
func (p *part) start(ctx context.Context) error {
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(callerOf(ctx)))
	tasks.New(ctx).Go(p.name, func(ctx context.Context) error {
		defer close(p.done)
		p.ended(ctx, tasks.Contain(p.name, func() error { return p.run(ctx) }))
		return nil
	})
	return nil
}

// ended reports an end that nobody asked for, and keeps what went wrong in one
// that somebody did.
func (p *part) ended(ctx context.Context, err error) {
	if ctx.Err() == nil {
		if err == nil {
			err = errors.New("ended by itself")
		}
		p.runner.fail(named(p.name, err))
		return
	}
	if !errors.Is(err, context.Canceled) {
		p.late = err
	}
}

// stop ends the part and waits for it.
func (p *part) stop(ctx context.Context) error {
	p.cancel()
	return within(ctx, p.name, p.budget, func(ctx context.Context) error {
		select {
		case <-p.done:
			return p.late
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
