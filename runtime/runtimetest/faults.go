package runtimetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// FaultKind is what goes wrong.
type FaultKind string

// The kinds of faults.
const (
	// Slow delays the effect by Delay.
	Slow FaultKind = "Slow"
	// Hang blocks before the effect until the caller gives up (no effect) or
	// Planted.Release (the call goes on).
	Hang FaultKind = "Hang"
	// Fail returns Err without the effect.
	Fail FaultKind = "Fail"
	// FailAfterEffect has the effect, then returns Err.
	FailAfterEffect FaultKind = "FailAfterEffect"
	// HangAfterEffect has the effect, then blocks as Hang does: the caller's
	// deadline passes over something that was done.
	HangAfterEffect FaultKind = "HangAfterEffect"
	// LoseEvents swallows the events of the pod (UID, or all) instead of
	// hitting calls. Nth, Times and Probability count events.
	LoseEvents FaultKind = "LoseEvents"
)

// Fault says which calls go wrong and how. Zero fields match every call.
type Fault struct {
	Kind      FaultKind
	Method    Method
	UID       string // of the pod
	Container string // its name; hits only calls that know it
	// Nth hits only the nth matching call, counted from 1 since Fault.
	Nth int
	// Times is how many calls are hit at most; 0: all.
	Times int
	// Probability between 0 and 1 hits by chance (Config.Seed); 0: always.
	Probability float64
	// Delay is for Slow.
	Delay time.Duration
	// Err is for Fail and FailAfterEffect; nil: code Unknown, "planted fault".
	Err error
}

// Planted is a fault at work.
type Planted struct {
	fault    Fault
	owner    *faults
	released chan struct{}
	once     sync.Once

	seen, hits int // guarded by owner.mu
}

// Fault plants a fault. Of several that match one call, the first planted hits.
func (w *World) Fault(f Fault) *Planted {
	p := &Planted{fault: f, owner: &w.faults, released: make(chan struct{})}
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	w.faults.planted = append(w.faults.planted, p)
	return p
}

// Release lets the calls go on that hang, now and later.
func (p *Planted) Release() { p.once.Do(func() { close(p.released) }) }

// Remove ends the fault and releases what hangs.
func (p *Planted) Remove() {
	p.Release()
	p.owner.mu.Lock()
	defer p.owner.mu.Unlock()
	for i, other := range p.owner.planted {
		if other == p {
			p.owner.planted = append(p.owner.planted[:i:i], p.owner.planted[i+1:]...)
			return
		}
	}
}

// Hits is how many calls (or events) were hit so far.
func (p *Planted) Hits() int {
	p.owner.mu.Lock()
	defer p.owner.mu.Unlock()
	return p.hits
}

// ClearFaults removes all faults.
func (w *World) ClearFaults() {
	w.faults.mu.Lock()
	all := w.faults.planted
	w.faults.planted = nil
	w.faults.mu.Unlock()
	for _, p := range all {
		p.Release()
	}
}

// faults holds what is planted, under a lock of its own: they are matched
// while no lock of the World is held (calls) and while it is (events).
type faults struct {
	mu      sync.Mutex
	planted []*Planted
	rand    *rand.Rand
}

func newFaults(seed uint64) faults {
	return faults{rand: rand.New(rand.NewPCG(seed, 0))}
}

func (f *faults) match(c call) *Planted {
	return f.hit(func(p *Planted) bool {
		return p.fault.Kind != LoseEvents &&
			(p.fault.Method == "" || p.fault.Method == c.method) &&
			(p.fault.UID == "" || p.fault.UID == c.uid) &&
			(p.fault.Container == "" || p.fault.Container == c.container)
	})
}

func (f *faults) losesEvent(uid string) bool {
	return f.hit(func(p *Planted) bool {
		return p.fault.Kind == LoseEvents && (p.fault.UID == "" || p.fault.UID == uid)
	}) != nil
}

func (f *faults) hit(matches func(*Planted) bool) *Planted {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.planted {
		if matches(p) && f.rollLocked(p) {
			p.hits++
			return p
		}
	}
	return nil
}

func (f *faults) rollLocked(p *Planted) bool {
	p.seen++
	switch {
	case p.fault.Nth > 0 && p.seen != p.fault.Nth:
		return false
	case p.fault.Times > 0 && p.hits >= p.fault.Times:
		return false
	case p.fault.Probability > 0:
		return f.rand.Float64() < p.fault.Probability
	}
	return true
}

func (w *World) before(ctx context.Context, p *Planted) error {
	if p == nil {
		return nil
	}
	switch p.fault.Kind {
	case Slow:
		return w.pause(ctx, p.fault.Delay, nil)
	case Hang:
		return w.pause(ctx, forever, p.released)
	case Fail:
		return p.err()
	case FailAfterEffect, HangAfterEffect, LoseEvents:
	}
	return nil
}

// after turns the outcome of the effect into what the caller sees.
func (w *World) after(ctx context.Context, p *Planted, err error) error {
	if p == nil {
		return err
	}
	switch p.fault.Kind {
	case FailAfterEffect:
		if err == nil {
			return p.err()
		}
		return errors.Join(p.err(), err)
	case HangAfterEffect:
		if late := w.pause(ctx, forever, p.released); late != nil {
			return late
		}
	case Slow, Hang, Fail, LoseEvents:
	}
	return err
}

func (p *Planted) err() error {
	if p.fault.Err != nil {
		return p.fault.Err
	}
	return status.Error(codes.Unknown, "planted fault")
}
