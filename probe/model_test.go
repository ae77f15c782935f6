package probe

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// This file holds the manager to a reference that is slow and simple: it looks
// at one container millisecond by millisecond, with no heap, queue or worker.

const tick = time.Millisecond

// script is what one seed asks for: a container, the answers to its checks by
// type, and what happens to it when (in ticks).
type script struct {
	c       Container
	answers map[Type][]answer
	events  map[int]string
	ticks   int
}

func newScript(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 0))
	s := script{
		c:       Container{UID: fmt.Sprint(seed), Name: "c", ID: "1"},
		answers: map[Type][]answer{}, events: map[int]string{}, ticks: 6000,
	}
	// Ends of checks never meet: each type's durations leave a remainder of its own.
	for i, t := range []Type{Liveness, Readiness, Startup} {
		if r.IntN(4) == 0 {
			continue
		}
		spec := &Spec{
			Handler: tcp(), InitialDelay: time.Duration(r.IntN(30)*20) * tick, Period: time.Duration(5+r.IntN(30)) * 20 * tick,
			Timeout: time.Hour, SuccessThreshold: 1 + r.IntN(2), FailureThreshold: 1 + r.IntN(4),
		}
		switch t {
		case Liveness:
			s.c.Liveness = spec
		case Readiness:
			s.c.Readiness = spec
		case Startup:
			s.c.Startup = spec
		}
		results := []Result{Success, Success, Failure, Warning, Unknown}
		for range 100 {
			takes := r.IntN(5)*20 + 3*i + 1
			if r.IntN(8) == 0 {
				takes += 20 * r.IntN(60)
			}
			s.answers[t] = append(s.answers[t], answer{result: results[r.IntN(len(results))], takes: time.Duration(takes) * tick})
		}
	}
	for range r.IntN(3) {
		s.events[r.IntN(s.ticks/20)*20+12] = []string{"stopping", "again", "new", "forget"}[r.IntN(4)]
	}
	return s
}

// ours runs the script on a manager.
func (s script) ours(t *testing.T) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for typ, list := range s.answers {
			for i := range list {
				list[i].deaf = true
			}
			r.answer("c "+string(typ), slices.Clone(list)...)
		}
		r.run()
		r.watch(s.c)
		c := s.c
		for _, i := range slices.Sorted(maps.Keys(s.events)) {
			r.pass(time.Duration(i)*tick - time.Since(r.start))
			switch s.events[i] {
			case "stopping":
				r.Stopping(c.UID)
			case "again":
				if pod := r.pods[c.UID]; pod != nil && len(pod.runs) > 0 {
					r.watch(c)
				}
			case "new":
				c.ID += "'"
				c.StartedAt = time.Now()
				r.watch(c)
			case "forget":
				r.Forget(c.UID, c.Name)
			}
		}
		r.pass(time.Duration(s.ticks)*tick - time.Since(r.start))
		r.stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		lines = append(slices.Clone(r.checks), r.told...)
	})
	return lines
}

// referenceProbe is one probe of the reference.
type referenceProbe struct {
	typ      Type
	spec     Spec
	value    Result
	row      []Result // the results that count, newest last
	next     time.Duration
	began    time.Duration
	due      time.Duration
	busy     bool
	answer   answer
	isSpread bool
	planned  bool
}

type reference struct {
	script
	now      time.Duration
	lines    []string
	used     map[Type]int
	probes   []*referenceProbe
	id       string
	begun    time.Duration
	watched  bool
	stopping bool
	held     Type
	told     string
}

func (s script) reference() []string {
	m := &reference{script: s, used: map[Type]int{}, id: s.c.ID}
	m.watch()
	for i := range s.ticks {
		// Phases are not whole milliseconds: look at all that ends in this one.
		from := time.Duration(i) * tick
		m.now = from
		switch s.events[i] {
		case "stopping":
			m.stopping = true
			m.tell()
		case "new":
			m.id += "'"
			m.watch()
		case "forget":
			if m.watched {
				m.say("%s forgotten", "c")
			}
			m.watched, m.probes, m.told = false, nil, ""
		}
		for m.step(from + tick) {
		}
	}
	return m.lines
}

func (m *reference) watch() {
	m.watched, m.begun, m.held, m.told, m.probes = true, m.now, "", "", nil
	for _, t := range []Type{Liveness, Readiness, Startup} {
		if spec := m.c.spec(t); spec != nil {
			value := map[Type]Result{Liveness: Success, Readiness: Failure, Startup: Unknown}[t]
			m.probes = append(m.probes, &referenceProbe{typ: t, spec: *spec, value: value})
		}
	}
	m.tell()
}

// step does the earliest thing that happens before the end of the tick.
func (m *reference) step(end time.Duration) bool {
	var first *referenceProbe
	var when time.Duration
	for _, p := range m.probes {
		at, some := m.when(p)
		if some && at < end && (first == nil || at < when) {
			first, when = p, at
		}
	}
	if first == nil {
		return false
	}
	m.now = max(m.now, when)
	if first.busy {
		m.finish(first)
	} else {
		m.begin(first)
	}
	return true
}

// when is the next thing that happens to a probe.
func (m *reference) when(p *referenceProbe) (time.Duration, bool) {
	if p.busy {
		return p.began + p.answer.takes, true
	}
	started := true
	for _, other := range m.probes {
		if other.typ == Startup {
			started = other.value == Success
		}
	}
	allowed := m.held == "" && (p.typ == Readiness || !m.stopping)
	if p.typ == Startup {
		allowed = allowed && !started
	} else {
		allowed = allowed && started
	}
	if !allowed {
		return 0, false
	}
	if !p.planned {
		p.planned, p.next = true, max(m.now, m.begun+p.spec.InitialDelay)
	}
	return p.next, true
}

func (m *reference) begin(p *referenceProbe) {
	p.busy, p.due, p.began = true, p.next, m.now
	p.answer = m.answers[p.typ][min(m.used[p.typ], 99)]
	m.used[p.typ]++
	m.lines = append(m.lines, fmt.Sprint(m.now, " c ", p.typ))
}

func (m *reference) finish(p *referenceProbe) {
	p.busy = false
	if m.held != "" || m.stopping && p.typ != Readiness {
		return
	}
	r := p.answer.result
	if r == Warning {
		r = Success
	}
	if r != Unknown {
		p.row = append(p.row, r)
		n := p.spec.SuccessThreshold
		if r == Failure {
			n = p.spec.FailureThreshold
		}
		if len(p.row) >= n && !slices.ContainsFunc(p.row[len(p.row)-n:], func(other Result) bool { return other != r }) {
			p.value = r
		}
	}
	if p.typ != Readiness && p.value == Failure {
		m.held = p.typ
	}
	p.next = p.due + p.spec.Period
	if r == Failure {
		p.next = p.began + p.spec.Period
	}
	if r == Success && p.value == Success && !p.isSpread {
		p.isSpread = true
		p.next = p.due + time.Duration(shareOf(m.c.UID, "c", p.typ)*float64(p.spec.Period))
	}
	for p.next+p.spec.Period/10 < m.now {
		p.next += p.spec.Period
	}
	m.tell()
}

func (m *reference) tell() {
	if !m.watched {
		return
	}
	text := "c/" + m.id
	for _, t := range []Type{Startup, Readiness} {
		for _, p := range m.probes {
			if p.typ == t {
				text += fmt.Sprintf(" %s=%t", map[Type]string{Startup: "started", Readiness: "ready"}[t], p.value == Success)
			}
		}
	}
	if m.held != "" && !m.stopping {
		text += " unhealthy:" + string(m.held)
	}
	if text != m.told {
		m.told = text
		m.say("%s", text)
	}
}

func (m *reference) say(format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprint(m.now, " ", fmt.Sprintf(format, args...)))
}

// TestAgainstReference runs random scripts on both.
func TestAgainstReference(t *testing.T) {
	for seed := range uint64(200) {
		s := newScript(seed)
		got, want := s.ours(t), s.reference()
		for _, lines := range [][]string{got, want} {
			slices.SortStableFunc(lines, func(a, b string) int { return int(at(a) - at(b)) })
			slices.Sort(lines)
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			t.Fatalf("seed %d: events %v\n%+v\ngot\n%s\n\nwant\n%s", seed, s.events, s.c, diff(got, want), diff(want, got))
		}
	}
}

// diff is what is in one and not in the other.
func diff(a, b []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) }), "\n")
}
