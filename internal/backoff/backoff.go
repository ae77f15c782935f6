// Package backoff counts how long to wait after failures in a row: a value per
// thing, a map of them, no clock and no goroutine.
//
//	b := backoff.NewMap(backoff.Policy{Base: 10 * time.Second, Max: 5 * time.Minute})
//	if wait := b.Wait(key, now); wait > 0 { ... not yet }
//	b.Fail(key, now, err.Error())    // or b.Succeed(key)
//
// A Map is for one goroutine, or under its owner's lock.
package backoff

import "time"

// Policy says how the delay grows: Base after the first failure, doubling up
// to Max. A thing that was quiet for Forget starts from Base again.
type Policy struct {
	Base time.Duration
	Max  time.Duration
	// Forget is counted from the last failure. Zero: twice Max.
	Forget time.Duration
}

func (p Policy) forget() time.Duration {
	if p.Forget > 0 {
		return p.Forget
	}
	return 2 * p.Max
}

// State is the back-off of one thing. The zero value has not failed.
type State struct {
	Failures int
	Delay    time.Duration
	FailedAt time.Time
	// Note says what went wrong last, for messages during the wait.
	Note string
}

// Fail returns the state after one more failure at now.
func (s State) Fail(p Policy, now time.Time, note string) State {
	if s.Failures == 0 || s.Expired(p, now) {
		return State{Failures: 1, Delay: min(p.Base, p.Max), FailedAt: now, Note: note}
	}
	return State{Failures: s.Failures + 1, Delay: min(2*s.Delay, p.Max), FailedAt: now, Note: note}
}

// Wait is how long to wait from now on; 0 when the next try may start.
func (s State) Wait(now time.Time) time.Duration {
	return max(0, s.FailedAt.Add(s.Delay).Sub(now))
}

// Expired says that the last failure is so long ago that it does not count.
func (s State) Expired(p Policy, now time.Time) bool {
	return now.Sub(s.FailedAt) > p.forget()
}

// Map holds a State per key. Use NewMap.
type Map[K comparable] struct {
	policy Policy
	states map[K]State
	swept  time.Time
}

// NewMap makes an empty map.
func NewMap[K comparable](p Policy) *Map[K] {
	return &Map[K]{policy: p, states: map[K]State{}}
}

// Get returns the state of key; the zero State when it has not failed.
func (m *Map[K]) Get(key K) State { return m.states[key] }

// Wait is how long key must wait from now on.
func (m *Map[K]) Wait(key K, now time.Time) time.Duration { return m.states[key].Wait(now) }

// Fail records a failure of key and returns how long to wait. Entries of other
// keys that expired are dropped on the way, at most once per Max.
func (m *Map[K]) Fail(key K, now time.Time, note string) time.Duration {
	m.sweep(now)
	s := m.states[key].Fail(m.policy, now, note)
	m.states[key] = s
	return s.Delay
}

// Succeed forgets the failures of key.
func (m *Map[K]) Succeed(key K) { delete(m.states, key) }

// Len is how many keys failed and are not forgotten yet.
func (m *Map[K]) Len() int { return len(m.states) }

func (m *Map[K]) sweep(now time.Time) {
	if now.Sub(m.swept) < m.policy.Max {
		return
	}
	m.swept = now
	for key, s := range m.states {
		if s.Expired(m.policy, now) {
			delete(m.states, key)
		}
	}
}
