package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// findRestartAll finds a container whose exit asks to restart all containers.
// While its dead container is there the restart is under way: all others are
// stopped and removed before it, so that it also tells an agent without memory.
func (d *decision) findRestartAll() {
	if d.pod == nil || d.in.Mem.Ending != nil || d.in.Want.Stop != nil {
		d.mem.RestartAll = nil
		return
	}
	for _, c := range d.withRole(initRole, sidecarRole, mainRole) {
		if len(c.runs) == 0 || c.runs[0].ID != c.mem.Run.ID || alive(c.runs[0]) {
			continue
		}
		if matchedRule(c.spec, c.runs[0].ExitCode, d.in.Want.Rules) == corev1.ContainerRestartRuleActionRestartAllContainers {
			d.restartAll = c
			break
		}
	}
	switch {
	case d.restartAll == nil:
		d.mem.RestartAll = nil
	case d.mem.RestartAll == nil:
		now := d.now
		d.mem.RestartAll = &now
	}
}

// clearForRestartAll removes the dead containers of a pod that restarts all of
// them, the one that asked for it last. Their runs do not count any more.
func (d *decision) clearForRestartAll() {
	if d.restartAll == nil {
		return
	}
	d.mem.Initialized = ""
	others := false
	for _, c := range d.withRole(initRole, sidecarRole, mainRole) {
		c.mem.Anew = true
		if c != d.restartAll {
			others = d.clear(c) || others
		}
	}
	if !others {
		d.clear(d.restartAll)
	}
}

// clear removes all of a container. It reports whether something is left.
func (d *decision) clear(c *container) bool {
	if c.flight == nil && c.live() == nil && len(c.runs) > 0 {
		d.removeContainer(c, c.runs[len(c.runs)-1], killRestartAll)
	}
	return len(c.runs) > 0 || c.flight != nil
}

// anyAnew says that a restart of all containers is not over: one of them did
// not run since. A pod that is being stopped meanwhile has yet to tell so, to an
// agent that has to finish the stop without memory.
func (d *decision) anyAnew() bool {
	return !d.final() && slices.ContainsFunc(d.withRole(initRole, sidecarRole, mainRole), func(c *container) bool { return c.mem.Anew })
}

// cutShort says that the pod ended in the midst of a restart of all containers:
// this one was taken away and did not come back. How it ended before that says
// nothing of how the pod did: what was to run and did not is no success.
func (d *decision) cutShort(c *container) bool {
	return d.final() && c.mem.Anew && len(c.runs) == 0
}

// toldOfRestartAll says that the API server was told of a restart of all
// containers, and not of its end.
func toldOfRestartAll(prior *corev1.PodStatus) bool {
	return slices.ContainsFunc(prior.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.AllContainersRestarting && c.Status == corev1.ConditionTrue
	})
}
