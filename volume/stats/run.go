package stats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/volume"
)

const (
	// patience is how long a call may hold its place among those of its kind.
	patience = 2 * time.Second
	// lastGrace is how long a call that was cancelled has to end.
	lastGrace = time.Second
)

// Run measures until ctx ends, and returns its error. Calls that were given up,
// or that do not end within a second, are left behind: nothing can end them.
func (m *Manager) Run(ctx context.Context) error {
	if m.cfg.Off() {
		<-ctx.Done()
		return ctx.Err()
	}
	watched := tasks.New(ctx) // each ends in time
	calls := tasks.New(ctx)   // some may never
	err := m.dispatch(ctx, watched, calls)
	calls.Stop()
	watched.Stop()
	return errors.Join(err, watched.Wait())
}

func (m *Manager) dispatch(ctx context.Context, watched, calls *tasks.Group) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		m.mu.Lock()
		e, wait := m.queue.due(time.Now())
		if e != nil {
			e.busy, e.soon = true, false
		}
		m.mu.Unlock()
		if e != nil {
			watched.Go("volume-stats", func(ctx context.Context) error {
				m.watch(ctx, calls, e)
				return nil
			})
			continue
		}
		var due <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case <-due:
		case <-m.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// call is one measurement.
type call struct {
	m *Manager
	e *entry
	// limit ends the call; the walk, which has more time, sets it anew.
	limit *time.Timer
	done  chan struct{}
	// Only the call itself knows these, before done is closed.
	began   time.Time
	place   volume.Place
	mounted bool
	source  string
	result  ReadResult
	err     error
}

// watch starts a call for the volume and waits for it, but not for ever.
func (m *Manager) watch(ctx context.Context, calls *tasks.Group, e *entry) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	c := &call{m: m, e: e, began: began, done: make(chan struct{})}
	c.limit = time.AfterFunc(m.cfg.Timeout, func() { cancel(errTimeout) })
	defer c.limit.Stop()
	calls.Go("volume-stats-call", func(context.Context) error {
		defer close(c.done)
		c.err = tasks.Contain("measuring a volume", func() error { return c.measure(limited) })
		m.ended(c)
		return nil
	})
	select {
	case <-c.done:
		return
	case <-limited.Done():
	}
	grace := time.NewTimer(lastGrace)
	defer grace.Stop()
	select {
	case <-c.done:
	case <-grace.C:
		if ctx.Err() == nil {
			m.givenUp(e, time.Since(began))
		}
	}
}

var errTimeout = errors.New("it takes too long")

// givenUp tells of a call that does not end.
func (m *Manager) givenUp(e *entry, took time.Duration) {
	m.mu.Lock()
	pod, name := e.pod, e.name
	m.mu.Unlock()
	m.log.Warn("measuring a volume hangs; its last figures stay, and it is not measured again before that ends",
		"pod", pod.Namespace+"/"+pod.Name, "uid", string(pod.UID), "volume", name, "for", took)
	if m.cfg.Observer.GivenUp != nil {
		m.cfg.Observer.GivenUp(Measured{UID: string(pod.UID), Volume: name, Took: took, Err: errTimeout})
	}
}

// ended takes in what a call found, and sets the time of the next one.
func (m *Manager) ended(c *call) {
	now := time.Now()
	took := now.Sub(c.began)
	kind := c.place.Kind()
	m.mu.Lock()
	pod := c.e.pod
	before := c.e.last
	var changed Stats
	c.e.busy = false
	later := reasoned.RetryAfter(c.err, 0) > 0
	news := c.err != nil && !later && !c.e.failing
	c.e.failing = c.err != nil && (c.e.failing || !later)
	if !c.e.gone {
		c.e.take(c, now)
		m.schedule(c.e, m.next(c, kind, took))
	}
	if c.e.last != nil {
		changed = *c.e.last
	}
	m.mu.Unlock()
	if c.source != "" && m.cfg.Observer.Measured != nil {
		m.cfg.Observer.Measured(Measured{UID: string(pod.UID), Volume: c.e.name, Kind: kind, Source: c.source, Took: took, Err: c.err})
	}
	if c.err != nil {
		if news && !errors.Is(c.err, context.Canceled) {
			m.log.Warn("a volume is not measured; its last figures stay", "pod", pod.Namespace+"/"+pod.Name, "uid", string(pod.UID), "volume", c.e.name, "err", c.err)
		}
		return
	}
	if tell := m.cfg.Observer.Figures; tell != nil && changed.UID != "" {
		tell(pod, changed)
	}
	if tell := m.cfg.Observer.ConditionChanged; tell != nil && !reflect.DeepEqual(condition(before), changed.Condition) {
		tell(pod, changed)
	}
	if tell := m.cfg.Observer.HealthChanged; tell != nil && healthChanged(before, changed) {
		tell(pod, changed)
	}
}

func condition(s *Stats) *Condition {
	if s == nil {
		return nil
	}
	return s.Condition
}

// healthChanged: a volume that is sound from the start is no news.
func healthChanged(before *Stats, now Stats) bool {
	var was Stats
	if before != nil {
		was = *before
	}
	return !sameHealth(was.Health, now.Health)
}

// take puts the result of a call into the figures. One that failed leaves them,
// and a volume that is not mounted any more has none. The lock is held.
func (e *entry) take(c *call, now time.Time) {
	if c.err != nil {
		return
	}
	before := e.last
	e.last = nil
	if !c.mounted || c.source == "" {
		return
	}
	s := &Stats{
		UID: string(e.pod.UID), Namespace: e.pod.Namespace, Pod: e.pod.Name, Volume: e.name,
		Kind: c.place.Kind(), Claim: c.place.Claim, Block: c.place.Block(), At: now,
		Usage: c.result.Usage, Condition: c.result.Condition,
		Health: c.result.Health, HealthKnown: c.result.HealthKnown, HealthSince: now,
	}
	if before != nil {
		if !s.HealthKnown {
			s.Health, s.HealthKnown = before.Health, before.HealthKnown
		}
		if before.HealthKnown && sameHealth(before.Health, s.Health) {
			s.HealthSince = before.HealthSince
		}
	}
	e.last = s
}

// next is how long to wait. A volume of a kind that is never measured is looked
// at when it is mounted anew; the lock is held.
func (m *Manager) next(c *call, kind string, took time.Duration) time.Duration {
	if c.e.soon {
		c.e.soon = false
		return rand.N(min(firstSpread, m.pace()))
	}
	if wait := reasoned.RetryAfter(c.err, 0); wait > 0 {
		return wait + rand.N(wait)
	}
	period := m.cfg.period(kind, c.place.Plugin)
	if !c.mounted || period == 0 {
		period = m.pace()
	}
	if c.source == sourceWalk {
		period = max(period, took*time.Duration(m.cfg.Walk.Ratio))
	}
	return period + rand.N(period/4+1)
}

// measure finds the volume and reads it.
func (c *call) measure(ctx context.Context) (err error) {
	m := c.m
	m.mu.Lock()
	pod := c.e.pod
	m.mu.Unlock()
	if c.place, c.mounted, err = m.volumes.Place(ctx, pod, c.e.name); err != nil || !c.mounted {
		return err
	}
	if m.cfg.period(c.place.Kind(), c.place.Plugin) == 0 {
		return nil
	}
	req := ReadRequest{Pod: pod, Place: c.place, Condition: m.cfg.Conditions, Health: m.cfg.Health}
	leave, err := m.enter(ctx, m.lane(c.place.Kind()))
	if err != nil {
		return err
	}
	// Who takes his time stands aside: others of the kind go first.
	aside := time.AfterFunc(patience, leave)
	defer leave()
	defer aside.Stop()
	if reader := m.cfg.Readers[c.place.Plugin]; reader != nil {
		c.source = c.place.Plugin
		if driver := c.place.Driver(); driver != "" {
			c.source = driver
		}
		c.result, err = reader.Read(ctx, req)
		return named(err, c.place)
	}
	var how method
	if c.source, how, err = m.host.choose(req); err == nil && how != nil {
		c.result.Usage, err = how(ctx)
	} else if err == nil && c.source == sourceWalk {
		leave()
		err = c.walk(ctx)
	}
	return named(err, c.place)
}

// walk waits for its turn, however long that takes, and then has its own time.
func (c *call) walk(ctx context.Context) error {
	c.limit.Reset(waitForever)
	leave, err := c.m.enter(ctx, c.m.walks)
	if err != nil {
		return err
	}
	defer leave()
	c.began = time.Now()
	c.limit.Reset(c.m.cfg.Walk.Timeout)
	lowPriority()
	c.result.Usage, err = c.m.host.usageByWalk(ctx, c.place.Path)
	return err
}

const waitForever = 100 * 365 * 24 * time.Hour

func named(err error, p volume.Place) error {
	if err != nil {
		return fmt.Errorf("volume %q of %s: %w", p.Volume.Name, p.Kind(), err)
	}
	return nil
}
