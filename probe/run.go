package probe

import (
	"context"
	"reflect"
	"time"
)

// place is where a probe is.
type place int8

const (
	idle    place = iota // held back, or done
	waiting              // in the timeline
	queued               // in the queue of its kind
	running              // a worker has it
)

// prober is one probe of one run. The manager's lock guards it.
type prober struct {
	run   *run
	typ   Type
	spec  Spec
	queue *queue
	share float64
	tally Tally

	place  place
	due    time.Time
	index  int    // in the timeline
	turn   uint64 // in the queue
	spread bool   // its phase is its own
	gone   bool   // no more checks; the result of one that runs is dropped
	cancel context.CancelFunc
}

// run is one run of a container. The manager's lock guards it.
type run struct {
	c        Container
	began    time.Time
	wait     time.Duration // holds the first checks back, after a restart of the agent
	stopping bool
	probes   [3]*prober // in the order of types
	failed   *prober
	message  string
	told     view
}

// view is what of a State makes it another one.
type view struct {
	told, hasStarted, started, hasReady, ready, unhealthy bool
}

// rests says that nothing runs under the container's name.
func (r *run) rests() bool { return r.probes == [3]*prober{} }

func (r *run) key() containerKey { return containerKey{r.c.UID, r.c.Name} }

func (r *run) probe(t Type) *prober {
	for _, p := range r.probes {
		if p != nil && p.typ == t {
			return p
		}
	}
	return nil
}

func (r *run) succeeded(t Type) (has, success bool) {
	p := r.probe(t)
	return p != nil, p != nil && p.tally.Value == Success
}

func (r *run) view() view {
	v := view{told: true, unhealthy: r.failed != nil && !r.stopping}
	v.hasStarted, v.started = r.succeeded(Startup)
	v.hasReady, v.ready = r.succeeded(Readiness)
	return v
}

func (r *run) state() State {
	v := r.view()
	s := State{
		Namespace: r.c.Namespace, Pod: r.c.Pod, UID: r.c.UID, Container: r.c.Name, ContainerID: r.c.ID,
		Unhealthy: v.unhealthy, Message: r.message,
	}
	if v.hasStarted {
		s.Started = &v.started
	}
	if v.hasReady {
		s.Ready = &v.ready
	}
	if v.unhealthy {
		s.Failed, s.Grace = r.failed.typ, r.failed.spec.Grace
	}
	return s
}

// mayRun says whether nothing holds a probe back but the time.
func (r *run) mayRun(p *prober) bool {
	has, started := r.succeeded(Startup)
	switch {
	case p.gone || r.failed != nil:
		return false
	case p.typ == Startup:
		return !started && !r.stopping
	case p.typ == Liveness && r.stopping:
		return false
	}
	return !has || started
}

// hasChanged says whether a probe is another one from now on, or none.
func (p *prober) hasChanged(spec *Spec) bool {
	if p == nil || spec == nil {
		return (p == nil) != (spec == nil)
	}
	return !reflect.DeepEqual(p.spec, *spec)
}

func (p *prober) target() Target {
	c := &p.run.c
	return Target{
		Namespace: c.Namespace, Pod: c.Pod, UID: c.UID, Container: c.Name, ContainerID: c.ID,
		Workload: c.Workload, Host: c.Host, Ports: c.Ports, Type: p.typ, Handler: p.spec.Handler, Timeout: p.spec.Timeout,
	}
}
