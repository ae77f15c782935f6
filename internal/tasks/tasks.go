// Package tasks runs background work that has a name: each task gets a pprof
// label, a context, a way to be waited for, and turns a panic into an error
// that names it. Nothing in nodekit starts a goroutine that outlives a call
// in another way.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"sync"
)

// Group is a set of tasks that end together: the first task that fails
// cancels the context of all. Use New.
type Group struct {
	ctx    context.Context //nolint:containedctx // the context of the tasks, not of a call
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// New makes a group whose tasks end when ctx does.
func New(ctx context.Context) *Group {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Group{ctx: ctx, cancel: cancel}
}

// Context is what the tasks of the group see.
func (g *Group) Context() context.Context { return g.ctx }

// Go starts a task. An error other than the context's own ends the group.
func (g *Group) Go(name string, fn func(ctx context.Context) error) {
	g.wg.Go(func() {
		pprof.Do(g.ctx, pprof.Labels("task", name), func(ctx context.Context) {
			err := Contain(name, func() error { return fn(ctx) })
			if err != nil && !(ctx.Err() != nil && errors.Is(err, ctx.Err())) {
				g.fail(err)
			}
		})
	})
}

func (g *Group) fail(err error) {
	g.mu.Lock()
	g.errs = append(g.errs, err)
	g.mu.Unlock()
	g.cancel(err)
}

// Stop cancels the context of the tasks without an error.
func (g *Group) Stop() { g.cancel(context.Canceled) }

// Wait returns after all tasks ended, with what went wrong (joined).
func (g *Group) Wait() error {
	g.wg.Wait()
	g.cancel(context.Canceled)
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}

// PanicError is a panic turned into an error by Contain.
type PanicError struct {
	Task  string
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: panic: %v\n%s", e.Task, e.Value, e.Stack)
}

// Contain calls fn and turns a panic into a *PanicError that names the task,
// so that a vendor's hook can not take the process down.
func Contain(task string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Task: task, Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}
