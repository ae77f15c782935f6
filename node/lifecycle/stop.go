package lifecycle

import (
	"time"

	"nodekit.dev/runtime"
)

// Why a container is stopped, as remembered and as actions tell it.
const (
	killPodEnds    = "PodEnds"
	killChanged    = "Changed"
	killUnhealthy  = "Unhealthy"
	killPostStart  = "FailedPostStartHook"
	killUnknown    = "Unknown"
	killSandbox    = "SandboxChanged"
	killDoubled    = "Doubled"
	killUnwanted   = "Unwanted"
	killRestartAll = "RestartAllContainers"
)

// stop ends all that runs: first what is on its way, then, after the vendor's
// hooks, the containers.
func (d *decision) stop() {
	d.cancelKinds(Admit, RunHooksPrepare, EnsureCgroup, Mount, Pull, RunSandbox, StartContainer, RunPostStart)
	d.stopWithHooks()
}

// stopWithHooks stops the containers once the vendor's hooks are done.
func (d *decision) stopWithHooks() {
	if d.stoppingHooksDone() {
		d.stopAll()
	}
}

// stoppingHooksDone runs the vendor's Stopping hooks before the first container
// is stopped. They do not get more than the grace.
func (d *decision) stoppingHooksDone() bool {
	if d.in.Seen.StoppingDone || d.pod == nil || !d.anyRunning() {
		return true
	}
	if !d.now.Before(d.mem.KillAt) {
		return true
	}
	d.wakeAt(d.mem.KillAt)
	d.try(Action{Kind: RunHooksStopping, Key: KeyHooks, Reason: string(d.mem.Ending.Reason)})
	return false
}

func (d *decision) anyRunning() bool {
	for _, c := range d.containers {
		if c.live() != nil {
			return true
		}
	}
	return false
}

// stopAll stops main containers at once, and then the sidecars one after the
// other in reverse order. When the grace is over nobody waits for anybody.
func (d *decision) stopAll() {
	waiting := false
	for _, c := range d.withRole(initRole, mainRole, ephemeralRole, strayRole) {
		d.stopLive(c)
		waiting = waiting || c.active()
	}
	over := !d.now.Before(d.mem.KillAt)
	sidecars := d.withRole(sidecarRole)
	for i := len(sidecars) - 1; i >= 0; i-- {
		if waiting && !over {
			d.wakeAt(d.mem.KillAt)
			return
		}
		d.stopLive(sidecars[i])
		waiting = waiting || sidecars[i].active()
	}
}

// stopLive stops all of a container that runs because the pod ends.
func (d *decision) stopLive(c *container) {
	for _, r := range c.runs {
		if alive(r) {
			d.kill(c, r, killing{reason: killPodEnds, at: d.mem.KillAt})
		}
	}
}

// killing says how and why one container is stopped.
type killing struct {
	reason      string
	message     string // empty: "Stopping container NAME"
	at          time.Time
	skipPreStop bool
}

// kill stops one run, or brings the end of a stop under way nearer. Once
// asked for, the time of the kill only falls.
func (d *decision) kill(c *container, r runtime.Container, k killing) {
	m := &c.mem
	noTime := !k.at.After(d.now)
	if m.KillID != r.ID {
		m.KillID, m.KillReason, m.KillMessage, m.KillAt = r.ID, k.reason, k.message, time.Time{}
		m.FlightKillAt = time.Time{}
	}
	if least := d.now.Add(d.in.Want.Rules.MinimumGrace); k.at.Before(least) {
		k.at = least
	}
	if m.KillAt.IsZero() || k.at.Before(m.KillAt) {
		m.KillAt = k.at
	}
	message := m.KillMessage
	if message == "" {
		message = "Stopping container " + c.name
	}
	d.tell("Killing/"+r.ID, Event{Type: EventNormal, Reason: "Killing", Message: message, Container: c.name})
	if c.flight != nil {
		d.hurry(c, r)
		return
	}
	if m.KillAt.Before(m.FlightKillAt) {
		delete(d.mem.Asked, KeyContainer(c.name)) // the stop before was cancelled to hurry
	}
	planned := d.try(Action{
		Kind: StopContainer, Key: KeyContainer(c.name), Container: c.name, ContainerID: r.ID, SandboxID: r.SandboxID,
		Grace:       max(0, m.KillAt.Sub(d.now)),
		SkipPreStop: k.skipPreStop || noTime || r.State == runtime.ContainerUnknown,
		Reason:      m.KillReason, Message: message,
	})
	if planned {
		m.FlightKillAt = m.KillAt
	}
}

// hurry cancels what is in flight on the container's key where it is in the
// way of an earlier kill.
func (d *decision) hurry(c *container, r runtime.Container) {
	switch {
	case c.starting():
		d.cancel(KeyContainer(c.name))
	case c.stopping() && c.flight.ContainerID == r.ID && c.mem.KillAt.Before(c.mem.FlightKillAt):
		d.cancel(KeyContainer(c.name))
	}
}

// stopUnwanted stops, while the pod is to run, each container that should not
// go on as it is.
func (d *decision) stopUnwanted() {
	for _, c := range d.containers {
		for i, r := range c.runs {
			if !alive(r) {
				continue
			}
			if k, unwanted := d.whyStop(c, r, i == 0); unwanted {
				d.kill(c, r, k)
			}
		}
	}
	d.clearForRestartAll()
}

// whyStop says why one run is to be stopped, if it is.
func (d *decision) whyStop(c *container, r runtime.Container, newest bool) (killing, bool) {
	k := killing{at: d.now.Add(d.podGrace())}
	switch {
	case c.role == strayRole:
		k.reason = killUnwanted
	case !newest:
		k.reason = killDoubled
	case d.restartAll != nil:
		// The stock kubelet gives it neither time nor hook.
		k.reason, k.at, k.skipPreStop = killRestartAll, d.now, true
	case r.State == runtime.ContainerUnknown:
		k.reason, k.message = killUnknown, `Container is in "unknown" state, try killing it before restart`
	case d.sandbox == nil || r.SandboxID != d.sandbox.ID:
		if d.busyWith(KeySandbox, RunSandbox) {
			return k, false // where it runs is about to be seen
		}
		k.reason = killSandbox
	case c.changed(r):
		k.reason, k.message = killChanged, "Container "+c.name+" definition changed, will be restarted"
	case d.hookFailed(c):
		k.reason, k.message = killPostStart, killPostStart
		d.tell("PostStart/"+r.ID, Event{
			Type: EventWarning, Reason: killPostStart,
			Message: d.in.Seen.PostStart[r.ID].Message, Container: c.name,
		})
	case c.mem.KillID == r.ID:
		// Asked for before; its reason may have passed, the stop has not.
		k.reason, k.message, k.at = c.mem.KillReason, c.mem.KillMessage, c.mem.KillAt
	default:
		return d.unhealthy(c, r)
	}
	return k, true
}

// unhealthy says whether a liveness or startup probe asks for a restart.
func (d *decision) unhealthy(c *container, r runtime.Container) (killing, bool) {
	p, found := d.in.Seen.Probes[c.name]
	if !found || !p.Unhealthy || p.ContainerID != r.ID {
		return killing{}, false
	}
	probe := "liveness"
	if p.Started != nil && !*p.Started {
		probe = "startup"
	}
	k := killing{reason: killUnhealthy, at: d.now.Add(d.podGrace())}
	if p.Grace != nil {
		k.at = d.now.Add(*p.Grace)
	}
	k.message = "Container " + c.name + " failed " + probe + " probe"
	if c.role == sidecarRole || d.restartsWhenKilled(c) {
		k.message += ", will be restarted"
	}
	return k, true
}

// restartsWhenKilled says whether the container's policy restarts it after a
// kill, whose exit code is not known yet but is hardly 0.
func (d *decision) restartsWhenKilled(c *container) bool {
	return restartAfter(c.spec, false, d.pod.Spec.RestartPolicy, exitUnknown, d.in.Want.Rules)
}
