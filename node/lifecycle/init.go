package lifecycle

import corev1 "k8s.io/api/core/v1"

// findInitProgress finds out how far the init containers are in the present
// sandbox. What ran in an older sandbox does not count: a new one starts over.
func (d *decision) findInitProgress() {
	if d.sandbox == nil {
		return
	}
	inits := d.withRole(initRole, sidecarRole)
	for place := len(inits) - 1; place >= 0; place-- {
		c := inits[place]
		if !c.ranIn(d.sandbox.ID) {
			continue
		}
		// Those before it are done, else it had not been started; their dead
		// containers may have been removed since.
		d.nextInit = place
		if d.initDone(c) {
			d.nextInit = place + 1
		}
		break
	}
	if d.nextInit == len(inits) || d.wasInitialized() {
		d.initialized, d.nextInit = true, len(inits)
		d.mem.Initialized = d.sandbox.ID
	}
}

// wasInitialized says that main containers were let run in this sandbox before.
func (d *decision) wasInitialized() bool {
	if d.mem.Initialized == d.sandbox.ID {
		return true
	}
	for _, c := range d.withRole(mainRole) {
		if c.ranIn(d.sandbox.ID) {
			return true
		}
	}
	return false
}

// initDone says whether the next init container may start after this one.
func (d *decision) initDone(c *container) bool {
	if c.role == sidecarRole {
		return d.started(c)
	}
	return c.end != nil && c.flight == nil && c.end.exit == 0
}

// endsHere says that the end of the container happened in the present sandbox.
func (d *decision) endsHere(c *container) bool {
	return d.sandbox != nil && c.end != nil && c.end.sandboxID == d.sandbox.ID
}

// placeOfInit is the container's place among the init containers.
func (d *decision) placeOfInit(c *container) int {
	for place, other := range d.withRole(initRole, sidecarRole) {
		if other == c {
			return place
		}
	}
	return 0
}

// initFailed says that an init container failed for good.
func (d *decision) initFailed() bool {
	if d.initialized {
		return false
	}
	for _, c := range d.withRole(initRole) {
		if c.end != nil && c.end.exit != 0 && !c.active() && !d.restarts(c) {
			return true
		}
	}
	return false
}

// started says whether a container counts as started: it runs, its postStart
// hook is done and its startup probe, if it has one, succeeded.
func (d *decision) started(c *container) bool {
	r := c.live()
	if r == nil || c.starting() || c.spec == nil || r.ID != c.runs[0].ID || d.hookOpen(c) {
		return false
	}
	if c.spec.StartupProbe == nil {
		return true
	}
	// Once started, always started: what the prober says of a container after
	// a restart of the agent is not news.
	if d.wasTold(c, r.ID, func(st *corev1.ContainerStatus) bool { return st.Started != nil && *st.Started }) {
		return true
	}
	p, found := d.in.Seen.Probes[c.name]
	return found && p.ContainerID == r.ID && p.Started != nil && *p.Started
}

// ready says whether a container counts as ready.
func (d *decision) ready(c *container) bool {
	r := c.live()
	if d.mem.Ending != nil || r == nil || c.stopping() || c.mem.KillID == r.ID || !d.started(c) {
		return false
	}
	if c.spec.ReadinessProbe == nil {
		return true
	}
	if p, found := d.in.Seen.Probes[c.name]; found && p.ContainerID == r.ID && p.Ready != nil {
		return *p.Ready
	}
	return d.wasTold(c, r.ID, func(st *corev1.ContainerStatus) bool { return st.Ready })
}

// wasTold says that this run was told to be so before: by this agent, or, as far
// as the rules allow, by the one before, whose word may come late.
func (d *decision) wasTold(c *container, id string, so func(*corev1.ContainerStatus) bool) bool {
	statuses := []*corev1.PodStatus{d.in.Mem.Status, d.in.Want.Prior}
	if d.in.Want.Rules.ProbesAfterRestart {
		statuses = statuses[:1]
	}
	for _, status := range statuses {
		if status == nil {
			continue
		}
		if st, found := statusOf(status, c.name); found && nameRun(st.ContainerID) == id && so(&st) {
			return true
		}
	}
	return false
}

func statusOf(status *corev1.PodStatus, name string) (corev1.ContainerStatus, bool) {
	for _, list := range [][]corev1.ContainerStatus{
		status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses,
	} {
		for _, st := range list {
			if st.Name == name {
				return st, true
			}
		}
	}
	return corev1.ContainerStatus{}, false
}

// oldStatus is the status told last, by us or by the agent before us; nil for none.
func (d *decision) oldStatus() *corev1.PodStatus {
	if d.in.Mem.Status != nil {
		return d.in.Mem.Status
	}
	return d.in.Want.Prior
}

// oldContainerStatus is what was told last of a container. Its ID is as it would
// be told now: the runtime's name may have become known since.
func (d *decision) oldContainerStatus(c *container) (corev1.ContainerStatus, bool) {
	old := d.oldStatus()
	if old == nil {
		return corev1.ContainerStatus{}, false
	}
	st, found := statusOf(old, c.name)
	if st.ContainerID != "" {
		st.ContainerID = containerID(d.in.Want.Rules, nameRun(st.ContainerID))
	}
	return st, found
}
