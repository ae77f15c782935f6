package lifecycle

import (
	"time"

	"nodekit.dev/runtime"
)

// noteStoppedSandboxes remembers which sandboxes were stopped: a sandbox that
// died by itself looks the same, but its network is still to be taken away.
func (d *decision) noteStoppedSandboxes() {
	asked := d.mem.Asked[KeySandbox]
	_, failed := d.in.Seen.Failed[KeySandbox]
	if asked.Kind == StopSandbox && !failed && !d.busy(KeySandbox) {
		d.mem.StoppedSandboxes[asked.What] = true
	}
	for id := range d.mem.StoppedSandboxes {
		if !d.shows(id) {
			delete(d.mem.StoppedSandboxes, id)
		}
	}
}

// shows says whether the runtime still has that sandbox.
func (d *decision) shows(sandboxID string) bool {
	for _, s := range d.in.Seen.Runtime.Sandboxes {
		if s.ID == sandboxID {
			return true
		}
	}
	return false
}

// findSandbox finds the sandbox where containers belong. Of several, only the
// newest can be it.
func (d *decision) findSandbox() {
	flight, taken := d.in.Busy[KeySandbox]
	newest, found := d.in.Seen.Runtime.NewestSandbox()
	if found && newest.Ready && d.networkFits(newest) {
		d.sandbox = &newest
	}
	if taken {
		d.sandboxBusy = flight.Kind == RunSandbox || (d.sandbox != nil && flight.SandboxID == d.sandbox.ID)
	}
}

// SettleTime is how old a sandbox without an address has to be before it counts
// as one that will not get any.
const SettleTime = 5 * time.Second

// networkFits says whether the sandbox has the kind of network that the spec
// asks for, and an address in it.
func (d *decision) networkFits(s runtime.Sandbox) bool {
	return d.pod == nil || (s.HostNetwork == d.pod.Spec.HostNetwork && !d.addressLost(s))
}

// addressLost says that a sandbox is without an address although it had the
// time to get one.
func (d *decision) addressLost(s runtime.Sandbox) bool {
	looked := d.in.Seen.LookedAt
	if looked.IsZero() {
		looked = d.now
	}
	return s.NoAddress && !looked.Before(s.CreatedAt.Add(SettleTime))
}

// keepSandbox gives the pod one good sandbox, and ends all others once nothing
// runs in them.
func (d *decision) keepSandbox() {
	if d.busyWith(KeySandbox, RunSandbox) {
		return
	}
	for _, s := range d.in.Seen.Runtime.Sandboxes {
		if d.sandbox != nil && s.ID == d.sandbox.ID {
			continue
		}
		if d.sandbox == nil {
			d.tell("SandboxChanged", Event{
				Type: EventNormal, Reason: "SandboxChanged",
				Message: "Pod sandbox changed, it will be killed and re-created.",
			})
		}
		if d.activeIn(s.ID) {
			return // stopUnwanted is at it
		}
		if d.endSandbox(s) {
			return // one after the other
		}
	}
	if d.sandbox == nil && !d.anyActive() {
		d.runSandbox()
	}
}

// activeIn says whether a process runs in the sandbox, or may be about to.
func (d *decision) activeIn(sandboxID string) bool {
	for _, c := range d.containers {
		if c.starting() && c.flight.SandboxID == sandboxID {
			return true
		}
		for _, r := range c.runs {
			if r.SandboxID == sandboxID && (alive(r) || (c.stopping() && c.flight.ContainerID == r.ID)) {
				return true
			}
		}
	}
	return false
}

// endSandbox stops or removes a sandbox that the pod does not use any more. It
// reports whether there is still something to do or to wait for.
func (d *decision) endSandbox(s runtime.Sandbox) (pending bool) {
	if d.busy(KeySandbox) {
		return true
	}
	if !d.holdsContainers(s.ID) {
		d.try(Action{Kind: RemoveSandbox, Key: KeySandbox, SandboxID: s.ID, Reason: "Unused"})
		return true
	}
	if s.Ready || !d.mem.StoppedSandboxes[s.ID] {
		d.try(Action{Kind: StopSandbox, Key: KeySandbox, SandboxID: s.ID, Reason: "SandboxChanged"})
		return true
	}
	return false
}

// holdsContainers says whether the runtime shows a container of that sandbox.
func (d *decision) holdsContainers(sandboxID string) bool {
	for _, r := range d.in.Seen.Runtime.Containers {
		if r.SandboxID == sandboxID {
			return true
		}
	}
	return false
}

func (d *decision) runSandbox() {
	if !d.cgroupReady() || d.volumeIsFar() {
		return
	}
	if !d.in.Seen.NetworkReady && !d.pod.Spec.HostNetwork {
		d.tell("NetworkNotReady", Event{
			Type: EventWarning, Reason: "NetworkNotReady",
			Message: "network is not ready: container runtime network not ready",
		})
		return
	}
	attempt := uint32(0)
	if newest, found := d.in.Seen.Runtime.NewestSandbox(); found {
		attempt = newest.Attempt + 1
		if due := newest.CreatedAt.Add(rebuildDelay(attempt)); d.now.Before(due) {
			d.wakeAt(due)
			return
		}
	}
	d.try(Action{Kind: RunSandbox, Key: KeySandbox, Attempt: attempt})
}

// rebuildDelay is the least age of a sandbox before the next attempt, so that
// one that dies at once is not remade in a tight loop.
func rebuildDelay(attempt uint32) time.Duration {
	return doubled(time.Second, int(min(attempt, 5))-1, 10*time.Second)
}

// usable says that containers can be started in the sandbox now.
func (d *decision) usable() bool { return d.sandbox != nil && !d.sandboxBusy }
