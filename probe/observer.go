package probe

import "time"

// Observer is told what happens, for metrics and events. Its functions may be
// nil, and must not block. They are called one at a time, in order: no Checked
// of a container comes after its Forgotten.
type Observer struct {
	// Checked is called after each check whose result counts.
	Checked func(Checked)
	// Forgotten is called when a container, with all its runs, is forgotten.
	Forgotten func(Container)
}

// Checked is one check that was made.
type Checked struct {
	Target  Target
	Kind    Kind
	Outcome Outcome
	// Due is when the check was to begin, Queued how much later it did, and Took
	// how long it was, second and third tries included.
	Due    time.Time
	Queued time.Duration
	Took   time.Duration
	// Counted is what the probe counts as from now on, after thresholds:
	// Success, Failure, or Unknown for a startup probe that has neither. Changed
	// says that it counted as another before.
	Counted Result
	Changed bool
}

// news is something that observers are to be told.
type news struct {
	checked   *Checked
	forgotten *Container
}

// tell calls the observers with all that is new. One caller at a time does it,
// for all, so that the order is kept and nobody waits for a lock meanwhile.
func (m *Manager) tell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.telling {
		return
	}
	m.telling = true
	for len(m.news) > 0 {
		list := m.news
		m.news = nil
		m.mu.Unlock()
		for _, n := range list {
			m.tellAll(n)
		}
		m.mu.Lock()
	}
	m.telling = false
}

func (m *Manager) tellAll(n news) {
	for i := range m.cfg.Observers {
		o := &m.cfg.Observers[i]
		_ = m.contain("observer of probes", func() { // it is in the log
			switch {
			case n.checked != nil && o.Checked != nil:
				o.Checked(*n.checked)
			case n.forgotten != nil && o.Forgotten != nil:
				o.Forgotten(*n.forgotten)
			}
		})
	}
}
