package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// role is what a container is to its pod.
type role int8

const (
	initRole    role = iota // runs to its end before the next one starts
	sidecarRole             // restartable init container
	mainRole
	ephemeralRole // runs once, is waited for by nobody
	strayRole     // runs, but the spec does not know it
)

// container is all that is known of one container name.
type container struct {
	name string
	role role
	spec *corev1.Container // nil for a stray
	mem  ContainerMemory
	// runs are the containers that were started, newest first; unstarted those
	// that were created and never ran.
	runs      []runtime.Container
	unstarted []runtime.Container
	// flight is what is under way on the container's key, nil for nothing.
	flight *Action
	// end is how the newest run ended; nil while it runs, if there never was
	// one, and when runs so far do not count any more.
	end *end
}

// end is how a run ended, as far as anybody knows.
type end struct {
	id        string
	sandboxID string
	exit      int32
}

// live is the newest run that is, or may be, a running process.
func (c *container) live() *runtime.Container {
	for i := range c.runs {
		if alive(c.runs[i]) {
			return &c.runs[i]
		}
	}
	return nil
}

func alive(r runtime.Container) bool {
	return r.State == runtime.ContainerRunning || r.State == runtime.ContainerUnknown
}

func (c *container) inFlight(kind Kind) bool { return c.flight != nil && c.flight.Kind == kind }
func (c *container) starting() bool          { return c.inFlight(StartContainer) }
func (c *container) stopping() bool          { return c.inFlight(StopContainer) }

// active says that a process of the container runs or may be about to.
func (c *container) active() bool { return c.live() != nil || c.starting() || c.stopping() }

// ranIn says whether the container was started in that sandbox.
func (c *container) ranIn(sandboxID string) bool {
	if c.mem.Anew {
		return false
	}
	return slices.ContainsFunc(c.runs, func(r runtime.Container) bool { return r.SandboxID == sandboxID }) ||
		(c.mem.Run.ID != "" && c.mem.Run.SandboxID == sandboxID)
}

// postStart is the container's hook, nil for none.
func (c *container) postStart() *corev1.LifecycleHandler {
	if c.spec == nil || c.spec.Lifecycle == nil {
		return nil
	}
	return c.spec.Lifecycle.PostStart
}

// newContainers sorts what the runtime shows under the containers of the spec.
func (d *decision) newContainers() []*container {
	var all []*container
	byName := map[string]*container{}
	add := func(name string, r role, spec *corev1.Container) {
		if byName[name] != nil {
			return
		}
		c := &container{name: name, role: r, spec: spec, mem: d.in.Mem.Containers[name]}
		if a, taken := d.in.Busy[KeyContainer(name)]; taken {
			c.flight = &a
		}
		byName[name] = c
		all = append(all, c)
	}
	if d.pod != nil {
		for i := range d.pod.Spec.InitContainers {
			spec := &d.pod.Spec.InitContainers[i]
			add(spec.Name, roleOfInit(spec), spec)
		}
		for i := range d.pod.Spec.Containers {
			spec := &d.pod.Spec.Containers[i]
			add(spec.Name, mainRole, spec)
		}
		for i := range d.pod.Spec.EphemeralContainers {
			spec := corev1.Container(d.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
			add(spec.Name, ephemeralRole, &spec)
		}
	}
	for _, r := range d.in.Seen.Runtime.Containers {
		add(r.Name, strayRole, nil)
		c := byName[r.Name]
		if r.State == runtime.ContainerCreated {
			c.unstarted = append(c.unstarted, r)
		} else {
			c.runs = append(c.runs, r)
		}
	}
	for _, key := range sortedKeys(d.in.Busy) { // a start whose container is not to be seen yet
		if kind := d.in.Busy[key].Kind; kind == StartContainer || kind == StopContainer {
			add(d.in.Busy[key].Container, strayRole, nil)
		}
	}
	return all
}

func roleOfInit(spec *corev1.Container) role {
	if spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return sidecarRole
	}
	return initRole
}

// withRole are the containers of these roles, in the order of the spec.
func (d *decision) withRole(roles ...role) []*container {
	var some []*container
	for _, c := range d.containers {
		if slices.Contains(roles, c.role) {
			some = append(some, c)
		}
	}
	return some
}

func (d *decision) anyActive() bool {
	return slices.ContainsFunc(d.containers, (*container).active)
}

// restarts says whether a container that ended is to run again.
func (d *decision) restarts(c *container) bool {
	if c.mem.KillReason == killChanged && c.mem.KillID == c.end.id {
		return true
	}
	switch c.role {
	case sidecarRole:
		return true
	case initRole, mainRole:
		return restartAfter(c.spec, c.role == initRole, d.pod.Spec.RestartPolicy, c.end.exit, d.in.Want.Rules)
	case ephemeralRole, strayRole:
	}
	return false
}

// wantsStart says whether the container should run and does not, whatever it
// still has to wait for.
func (d *decision) wantsStart(c *container) bool {
	if c.active() || d.restartAll != nil {
		return false
	}
	switch c.role {
	case initRole:
		if d.initialized || d.placeOfInit(c) < d.nextInit {
			return false
		}
		return c.end == nil || !d.endsHere(c) || d.restarts(c)
	case sidecarRole:
		return true
	case mainRole:
		return c.end == nil || d.restarts(c)
	case ephemeralRole:
		return !c.mem.Ran
	case strayRole:
	}
	return false
}
