package lifecycle

import (
	"time"

	"nodekit.dev/runtime"
)

// ProbedRun is a run of a container whose probes are to be made now. While it
// is in the plans, its prober checks; once it is not, it rests.
type ProbedRun struct {
	Container   string
	ContainerID string
	StartedAt   time.Time
	// Host is the pod's first address; empty while it has none.
	Host string
	// Started and Ready are what counts now. They are where a prober begins that
	// knows nothing of this run: what was told of it before a restart of the
	// agent stays until a check says otherwise.
	Started, Ready bool
}

// planProbes lists the runs to probe: main containers and sidecars that run,
// whose postStart hook is over, and that nobody is about to stop. A pod that
// ends is not probed: nothing may restart its containers, and it is not ready.
// After a restart of the agent containers run in the first phases too.
func (d *decision) planProbes() {
	if d.mem.Phase >= Stopping || d.mem.Ending != nil {
		return
	}
	for _, c := range d.withRole(sidecarRole, mainRole) {
		r := c.live()
		if r == nil || !c.probed() || r.State != runtime.ContainerRunning || r.ID != c.runs[0].ID ||
			c.starting() || c.stopping() || c.mem.KillID == r.ID || d.hookOpen(c) {
			continue
		}
		d.plan.Probes = append(d.plan.Probes, ProbedRun{
			Container: c.name, ContainerID: r.ID, StartedAt: r.StartedAt, Host: d.plan.Status.PodIP,
			Started: d.started(c), Ready: d.ready(c),
		})
	}
}

func (c *container) probed() bool {
	return c.spec.LivenessProbe != nil || c.spec.ReadinessProbe != nil || c.spec.StartupProbe != nil
}
