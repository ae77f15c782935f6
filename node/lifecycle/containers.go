package lifecycle

import (
	"slices"

	"nodekit.dev/runtime"
)

// startContainers starts every container whose own needs are met, in the order
// of the spec.
func (d *decision) startContainers() {
	if !d.usable() || !d.cgroupReady() {
		return
	}
	for _, c := range d.containers {
		if d.wantsStart(c) && d.itsTurn(c) {
			d.start(c)
		}
	}
}

// itsTurn holds init containers to their order and main containers back until
// the init containers are done.
func (d *decision) itsTurn(c *container) bool {
	switch c.role {
	case initRole:
		return d.placeOfInit(c) == d.nextInit
	case sidecarRole:
		// One that runs before its turn is over is kept running.
		return d.placeOfInit(c) <= d.nextInit
	case mainRole:
		return d.initialized
	case ephemeralRole:
		return true
	case strayRole:
	}
	return false
}

// start starts one container as soon as its image, its mounts and its back-off
// allow it.
func (d *decision) start(c *container) {
	key := KeyContainer(c.name)
	if d.busy(key) || d.busy(KeyPostStart(c.name)) || !d.startDue(c) {
		return
	}
	if len(c.unstarted) > 0 {
		// What a failed start left behind holds the name of the next attempt.
		d.try(Action{
			Kind: RemoveContainer, Key: key, Container: c.name,
			ContainerID: c.unstarted[0].ID, Reason: "NeverStarted",
		})
		return
	}
	if !d.imageReady(c) || !d.mountsReady(c) {
		return
	}
	// Not try: startDue knows more of earlier failures than the key does.
	d.add(Action{
		Kind: StartContainer, Key: key, Container: c.name, SandboxID: d.sandbox.ID,
		Attempt: c.nextAttempt(), Restarts: c.nextRestarts(), Image: c.spec.Image,
	})
	c.mem.HookDue = c.postStart() != nil
}

// startDue says whether back-offs are over.
func (d *decision) startDue(c *container) bool {
	due := c.mem.Until
	if f := c.mem.StartFailure; f != nil && f.Image == c.spec.Image {
		if f.Fatal {
			return false
		}
		if retry := d.retryAt(f.Failure); retry.After(due) {
			due = retry
		}
	}
	d.wakeAt(due)
	return !d.now.Before(due)
}

// nextRestarts is the restart count of the next run.
func (c *container) nextRestarts() int32 {
	if !c.mem.Ran {
		return 0
	}
	return c.mem.Restarts + 1
}

// nextAttempt is the restart count, or more where the runtime still has a
// container of that attempt.
func (c *container) nextAttempt() uint32 {
	attempt := uint32(c.nextRestarts())
	for _, r := range c.runs {
		attempt = max(attempt, r.Attempt+1)
	}
	return attempt
}

// hookOpen says whether the postStart hook of the newest run is still to end well.
func (d *decision) hookOpen(c *container) bool {
	if c.postStart() == nil || len(c.runs) == 0 || c.mem.HookID != c.runs[0].ID {
		return false
	}
	hook := d.in.Seen.PostStart[c.mem.HookID]
	return !hook.Done || hook.Failed
}

// hookFailed says whether the postStart hook of the newest run failed.
func (d *decision) hookFailed(c *container) bool {
	return d.hookOpen(c) && d.in.Seen.PostStart[c.mem.HookID].Failed
}

// runPostStarts runs the postStart hooks of containers that were just started,
// and cancels those of containers that ended meanwhile.
func (d *decision) runPostStarts() {
	for _, c := range d.containers {
		key := KeyPostStart(c.name)
		r := c.live()
		if flight, taken := d.in.Busy[key]; taken {
			if r == nil || r.ID != flight.ContainerID || c.mem.KillID == r.ID {
				d.cancel(key)
			}
			continue
		}
		if r == nil || r.State != runtime.ContainerRunning || r.ID != c.mem.HookID ||
			c.flight != nil || c.mem.KillID == r.ID || !d.hookOpen(c) || d.hookFailed(c) {
			continue
		}
		d.try(Action{Kind: RunPostStart, Key: key, Container: c.name, ContainerID: r.ID})
	}
}

// removeDead removes dead containers beyond those kept for their logs, and
// never started leftovers that no start is about to replace.
func (d *decision) removeDead() {
	for _, c := range d.containers {
		key := KeyContainer(c.name)
		if d.busy(key) || d.planned(key) {
			continue
		}
		if len(c.unstarted) > 0 && (d.mem.Phase >= Stopping || !d.wantsStart(c)) {
			d.removeContainer(c, c.unstarted[0], "NeverStarted")
			continue
		}
		if extra := c.beyondKept(d.in.Want.Rules.KeepDead); len(extra) > 0 {
			d.removeContainer(c, extra[len(extra)-1], "Superseded") // oldest first
		}
	}
}

// beyondKept are the dead runs that nobody keeps. The newest run stays in any
// case: it says whether the container is to run again.
func (c *container) beyondKept(keep int) []runtime.Container {
	if len(c.runs) > 0 && !alive(c.runs[0]) {
		keep = max(keep, 1)
	}
	dead := slices.DeleteFunc(slices.Clone(c.runs), alive)
	return dead[min(keep, len(dead)):]
}

func (d *decision) removeContainer(c *container, r runtime.Container, reason string) {
	d.try(Action{Kind: RemoveContainer, Key: KeyContainer(c.name), Container: c.name, ContainerID: r.ID, Reason: reason})
}
