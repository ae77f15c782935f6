package status

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
)

// Run writes until ctx ends, and returns its error after all calls ended. What
// was said just before the end is written within Config.FlushTime.
func (w *Writer) Run(ctx context.Context) error {
	w.mu.Lock()
	node := w.node
	w.mu.Unlock()
	if node == nil {
		return errors.New("status writer: call Attach before Run")
	}
	calls := tasks.New(context.WithoutCancel(ctx))
	free := make(chan struct{}, w.cfg.MaxCalls)
	for range w.cfg.MaxCalls {
		free <- struct{}{}
	}
	stop, ready, over := ctx.Done(), node.Ready(), (<-chan time.Time)(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ended := false; !ended; {
		w.startAll(calls, free)
		if stop == nil && len(free) == w.cfg.MaxCalls {
			break // nothing to write, nothing under way
		}
		w.setTimer(timer)
		select {
		case <-stop:
			stop, over = nil, time.After(w.cfg.FlushTime)
		case <-over:
			ended = true
		case <-w.wake:
		case <-timer.C:
			w.retry()
		case <-ready:
			ready = nil
			w.mu.Lock()
			w.ready = true
			w.mu.Unlock()
			w.lookAtMirrors() // those that nobody has named until now may go
		}
	}
	calls.Stop()
	if err := calls.Wait(); err != nil { // a bug: calls report to their items
		return err
	}
	return ctx.Err()
}

// setTimer makes the timer ring when the first item is to be tried again.
func (w *Writer) setTimer(timer *time.Timer) {
	if due := w.firstDue(); due.IsZero() {
		timer.Stop()
	} else {
		timer.Reset(time.Until(due))
	}
}

// startAll begins calls for as many items as there are free places.
func (w *Writer) startAll(calls *tasks.Group, free chan struct{}) {
	for {
		select {
		case <-free:
		default:
			return
		}
		it, j := w.pick()
		if it == nil {
			free <- struct{}{}
			return
		}
		calls.Go("pod status", func(ctx context.Context) error {
			err := tasks.Contain(string(j.verb), func() error { return w.do(ctx, it, j) })
			w.landed(ctx, it, j, err)
			free <- struct{}{}
			w.poke()
			return nil
		})
	}
}

// job is a step with what it was decided on.
type job struct {
	step
	view
	since time.Time
}

// pick takes the first item with something to do, and marks it as flying; nil:
// there is none.
func (w *Writer) pick() (*item, job) {
	for {
		it, v, since := w.take()
		if it == nil {
			return nil, job{}
		}
		s, err := next(v)
		if err != nil { // can not be: these are the API's own types
			w.log.Error("can not tell what to write", "pod", it.key.namespace+"/"+it.key.name, "uid", string(it.key.uid), "err", err)
		}
		if err == nil && s.verb != doNothing {
			return it, job{step: s, view: v, since: since}
		}
		w.rest(it)
	}
}

// take marks the first item in line as flying and copies what its next step
// depends on.
func (w *Writer) take() (*item, view, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := w.queue.take()
	if it == nil {
		return nil, view{}, time.Time{}
	}
	it.flying, it.dirty, it.urgent = true, false, false
	v := view{
		now: time.Now(), mirror: it.key.mirror(), has: it.has,
		synced: w.synced, deleted: it.deleted, inVain: it.inVain, reminded: it.reminded,
	}
	if said := it.said(); said != nil {
		says := *said
		v.says = &says
	}
	if v.mirror && v.says == nil && v.has != nil && w.ready {
		v.unwanted = !w.node.Exists(standsFor(v.has))
	}
	return it, v, it.since
}

// rest ends the flight of an item with nothing to do.
func (w *Writer) rest(it *item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it.flying = false
	if it.dirty || it.over() {
		w.news(it, it.urgent)
		return
	}
	it.since = time.Time{}
}

// landed notes the end of a call and what is to be done next.
func (w *Writer) landed(ctx context.Context, it *item, j job, err error) {
	if observe := w.parts.Observer.Called; observe != nil && j.verb != doRemind {
		observe(string(j.verb), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	it.flying = false
	switch {
	case err == nil:
		it.failed = backoff.State{}
		w.news(it, it.urgent) // the next step, or nothing
	case ctx.Err() != nil:
	case it.over():
		w.forget(it)
	default:
		policy := backoff.Policy{Base: w.cfg.RetryBase, Max: w.cfg.RetryMax}
		now := time.Now()
		news := it.failed.Failures == 0 || it.failed.Note != err.Error()
		it.failed = it.failed.Fail(policy, now, err.Error())
		it.due = now.Add(it.failed.Delay + rand.N(it.failed.Delay/2+1))
		w.waiting[it] = struct{}{}
		w.tellFailure(ctx, it, j, err, news)
	}
}

// tellFailure warns once of each failure.
func (w *Writer) tellFailure(ctx context.Context, it *item, j job, err error, news bool) {
	level := slog.LevelDebug
	if news {
		level = slog.LevelWarn
	}
	w.log.Log(ctx, level, "can not write a pod's status to the API server; trying again",
		"pod", it.key.namespace+"/"+it.key.name, "uid", string(it.key.uid), "action", string(j.verb),
		"retryIn", time.Until(it.due), "count", it.failed.Failures, "err", err)
}

// firstDue is when the first item is to be tried again; zero: none waits.
func (w *Writer) firstDue() (first time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for it := range w.waiting {
		if first.IsZero() || it.due.Before(first) {
			first = it.due
		}
	}
	return first
}

// retry puts in line what has waited long enough.
func (w *Writer) retry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for it := range w.waiting {
		if !now.Before(it.due) {
			w.enqueue(it, false)
		}
	}
}
