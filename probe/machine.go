package probe

import "time"

// This file is what happens to runs and probes. The manager's lock is held.

// update takes over what is new of a run, and begins what is to begin.
func (m *Manager) update(r *run, c Container, now time.Time) {
	saved, found := m.restored[c.ID]
	if found && c.ID != "" {
		delete(m.restored, c.ID)
	}
	if r.c.ID == "" && (found || c.WasStarted || c.WasReady) {
		r.wait = restoreSpread
	}
	m.replace(r, c, saved)
	r.c = c
	for _, p := range r.probes {
		if p != nil && p.typ != Readiness && p.tally.Value == Failure && !r.stopping {
			m.fail(r, p)
		}
	}
	m.schedule(r, now)
	m.publish(r)
}

// replace makes the probes anew that are others than before.
func (m *Manager) replace(r *run, c Container, saved map[Type]Tally) {
	for i, t := range types() {
		spec, old := c.spec(t), r.probes[i]
		if !old.hasChanged(spec) {
			continue
		}
		if old != nil {
			m.stop(old)
			m.saveSoon()
		}
		r.probes[i] = nil
		if spec == nil {
			continue
		}
		p := &prober{
			run: r, typ: t, spec: *spec, queue: m.queueOf(spec.kind()),
			share: shareOf(c.UID, c.Name, t), tally: initial(t),
		}
		if r.c.ID == "" { // the first time
			p.tally = before(t, &c)
		}
		if tally, found := saved[t]; found {
			p.tally = tally
		}
		r.probes[i] = p
	}
}

// schedule gives each probe a first time that has none, and takes it from those
// that are held back again.
func (m *Manager) schedule(r *run, now time.Time) {
	for _, p := range r.probes {
		switch {
		case p == nil:
		case !r.mayRun(p):
			m.unschedule(p)
		case p.place == idle:
			m.wait(p, firstCheck(&p.spec, r.began, now, time.Duration(p.share*float64(r.wait))))
		}
	}
}

func (m *Manager) wait(p *prober, due time.Time) {
	p.due, p.place = due, waiting
	m.timeline.add(p)
	if p.index == 0 {
		poke(m.wake)
	}
}

func (m *Manager) unschedule(p *prober) {
	switch p.place {
	case waiting:
		m.timeline.remove(p)
		p.place = idle
	case queued:
		p.queue.remove(p)
		p.place = idle
	case idle, running:
	}
}

// stop ends a probe for good.
func (m *Manager) stop(p *prober) {
	m.unschedule(p)
	p.gone = true
	if p.cancel != nil {
		p.cancel()
	}
}

// end ends all probes of a run that is no more.
func (m *Manager) end(r *run) {
	for _, p := range r.probes {
		if p != nil {
			m.stop(p)
		}
	}
	m.saveSoon()
}

// fail holds a run until it is replaced.
func (m *Manager) fail(r *run, p *prober) {
	r.failed = p
	for _, p := range r.probes {
		if p != nil {
			m.stop(p)
		}
	}
}

// count takes in the result of a check.
func (m *Manager) count(p *prober, c *Checked, at checkTimes) {
	r, before := p.run, p.tally
	p.tally = before.add(c.Outcome.Result, &p.spec)
	c.Counted, c.Changed = p.tally.Value, p.tally.Value != before.Value
	if p.tally != before {
		m.saveSoon()
	}
	if c.Changed {
		r.message = c.Outcome.Output
	}
	r.wait = 0 // what a check sets free begins at once
	if p.typ != Readiness && p.tally.Value == Failure {
		m.fail(r, p)
	}
	if r.mayRun(p) {
		m.wait(p, nextCheck(&p.spec, at, c.Outcome.Result, p.gap(c.Outcome.Result)))
	}
	m.schedule(r, at.ended)
	m.publish(r)
}

// gap is the time to the next check: the period, but for the one time when the
// probe's phase is moved away from the others'.
func (p *prober) gap(r Result) time.Duration {
	if p.spread || p.tally.Value != Success || r != Success && r != Warning {
		return p.spec.Period
	}
	p.spread = true
	return spreadGap(&p.spec, p.share)
}

// publish tells the reader of a state that is another one.
func (m *Manager) publish(r *run) {
	if v := r.view(); v != r.told {
		r.told = v
		m.states.put(r.key(), r.state())
	}
}

func (m *Manager) saveSoon() { poke(m.changes) }
