package fxrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nodekit.dev/internal/tasks"
)

// lastChance is how long a stop may take when the caller's time is over: one
// that hung must not make the quick ones behind it look as if they hung too.
const lastChance = 100 * time.Millisecond

// callerKey carries the context of the one who asked for the start or stop.
type callerKey struct{}

// Detach hides the end of ctx from fx, which would abandon the hooks that are
// left, while every part still sees it. It is for Start as well: fx undoes a
// start that failed under the same context.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx)
}

// callerOf gives the context that Detach hid.
func callerOf(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// begin calls a start as a named task and waits as long as the caller does.
func begin(ctx context.Context, name string, fn func(context.Context) error) error {
	ctx = callerOf(ctx)
	err := await(ctx, name, fn)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: did not start in time: %w", name, err)
	}
	return named(name, err)
}

// within calls a stop as a named task and waits for it no longer than the
// budget, and hardly longer than the caller does. A stop that overruns is left
// behind with a context that has ended.
func within(ctx context.Context, name string, budget time.Duration, fn func(context.Context) error) error {
	begun := time.Now()
	ctx, cancel := bounded(ctx, budget)
	defer cancel()
	err := await(ctx, name, fn)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return &OverrunError{Part: name, Waited: time.Since(begun)}
	}
	return named(name, err)
}

func bounded(ctx context.Context, budget time.Duration) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	unlink := context.AfterFunc(callerOf(ctx), func() { time.AfterFunc(lastChance, cancel) })
	return bounded, func() { unlink(); cancel() }
}

// await calls fn as a named task and waits for it, or for the end of ctx.
func await(ctx context.Context, name string, fn func(context.Context) error) error {
	done := make(chan error, 1)
	tasks.New(ctx).Go(name, func(ctx context.Context) error {
		done <- tasks.Contain(name, func() error { return fn(ctx) })
		return nil
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// named puts the part's name before an error, unless a panic has done so.
func named(name string, err error) error {
	var panicked *tasks.PanicError
	if err == nil || errors.As(err, &panicked) && panicked.Task == name {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
