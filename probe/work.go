package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nodekit.dev/internal/tasks"
)

// tries is how often a check is tried at once that could not be made.
const tries = 3

// Run makes the probes until ctx ends, and returns after the last check did. It
// may be called once.
func (m *Manager) Run(ctx context.Context) error {
	g := tasks.New(ctx)
	m.mu.Lock()
	again := m.group != nil
	if !again {
		m.group, m.began = g, time.Now()
	}
	m.mu.Unlock()
	if again {
		return errors.New("the manager of probes has run before")
	}
	g.Go("probe-states", m.states.run)
	m.pace(g.Context())
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// pace hands what is due to workers, until ctx ends.
func (m *Manager) pace(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if due, some := m.enqueue(time.Now()); some {
			timer.Reset(time.Until(due))
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-m.wake:
		case <-ctx.Done():
			return
		}
	}
}

// enqueue moves what is due to the queues, sees to it that there are workers for
// it, and says when the next is due.
func (m *Manager) enqueue(now time.Time) (next time.Time, some bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := m.timeline.popDue(now); p != nil; p = m.timeline.popDue(now) {
		m.turn++
		p.place, p.turn = queued, m.turn
		p.queue.waiting = append(p.queue.waiting, p)
	}
	for m.workers < m.cfg.Workers {
		p := pick(m.queues)
		if p == nil {
			break
		}
		m.workers++
		m.group.Go("probe-check", func(ctx context.Context) error { m.work(ctx, p); return nil })
	}
	if len(m.timeline) == 0 {
		return time.Time{}, false
	}
	return m.timeline[0].due, true
}

// work makes checks as long as there is one to make.
func (m *Manager) work(ctx context.Context, p *prober) {
	for p != nil {
		m.check(ctx, p)
		m.mu.Lock()
		p.queue.running--
		if p = pick(m.queues); p == nil {
			m.workers--
		}
		m.mu.Unlock()
		m.tell()
	}
}

// check makes one check of a probe and takes in what it found.
func (m *Manager) check(ctx context.Context, p *prober) {
	c := Checked{Kind: p.queue.kind, Due: p.due}
	at := checkTimes{due: p.due, began: time.Now()}
	for try, again := 0, true; again && try < tries; try++ {
		tryCtx, target, fine := m.begin(ctx, p)
		if !fine {
			break
		}
		c.Target = target
		c.Outcome, again = m.once(tryCtx, p.queue.check, target)
	}
	at.ended = time.Now()
	c.Queued, c.Took = at.began.Sub(at.due), at.ended.Sub(at.began)

	m.mu.Lock()
	p.place = idle
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
	counts := !p.gone && ctx.Err() == nil
	if counts {
		m.count(p, &c, at)
		if len(m.cfg.Observers) > 0 {
			m.news = append(m.news, news{checked: &c})
		}
	}
	m.mu.Unlock()
	if counts {
		m.log(&c)
	}
}

// begin gives a check its time and its target; the check before has lost its
// own. A probe that has ended is not fine.
func (m *Manager) begin(ctx context.Context, p *prober) (context.Context, Target, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
	if p.gone || ctx.Err() != nil {
		return nil, Target{}, false
	}
	ctx, p.cancel = context.WithTimeout(ctx, p.spec.Timeout)
	return ctx, p.target(), true
}

// once makes one check; again says that it could not be made, and that another
// try may do better.
func (m *Manager) once(ctx context.Context, check Check, t Target) (o Outcome, again bool) {
	if panicked := m.contain("check of a probe", func() { o = check(ctx, t) }, "pod", t.Namespace+"/"+t.Pod, "container", t.Container, "probe", string(t.Type)); panicked != nil {
		return Outcome{Err: panicked}, false
	}
	if o.Err != nil {
		o.Result = Unknown
	}
	return o, o.Err != nil
}

// contain turns a panic into a line in the log and an error.
func (m *Manager) contain(what string, fn func(), args ...any) error {
	err := tasks.Contain(what, func() error { fn(); return nil })
	var panicked *tasks.PanicError
	if !errors.As(err, &panicked) {
		return nil
	}
	m.cfg.Logger.With(args...).Error("a function panicked; the probes go on", "what", what, "panic", panicked.Value, "stack", string(panicked.Stack))
	return fmt.Errorf("%s: panic: %v", what, panicked.Value)
}

func (m *Manager) log(c *Checked) {
	t := &c.Target
	switch {
	case c.Changed:
		m.cfg.Logger.Info("a probe changed", "pod", t.Namespace+"/"+t.Pod, "uid", t.UID, "container", t.Container,
			"probe", string(t.Type), "result", c.Counted.String(), "output", c.Outcome.Output)
	case c.Outcome.Err != nil:
		m.cfg.Logger.Debug("a check could not be made", "pod", t.Namespace+"/"+t.Pod, "uid", t.UID, "container", t.Container,
			"probe", string(t.Type), "err", c.Outcome.Err)
	}
}
