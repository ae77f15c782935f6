package lifecycle

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// Decide says what to do now about one pod. It is a pure function of its
// input, which it does not change; see the package comment for the caller's
// duties.
func Decide(in Input) Plan {
	d := newDecision(in)
	if !in.Seen.Looked || d.held() {
		return d.unseen()
	}
	d.observe()
	d.chooseEnding()
	d.raisePhase()
	switch d.mem.Phase {
	case Queued:
		d.admit()
	case Preparing, Running:
		d.run()
	case Stopping:
		d.stop()
	case Cleaning:
		d.clean()
	case Finished:
	}
	d.tellFailures()
	d.report()
	d.planProbes()
	return d.finish()
}

// run brings the pod to where its spec wants it and keeps it there.
func (d *decision) run() {
	d.stopUnwanted()
	d.runPostStarts()
	if !d.prepared() {
		return
	}
	d.ensureCgroup()
	d.mountVolumes()
	d.pullImages()
	d.keepSandbox()
	d.startContainers()
	d.removeDead()
}

// decision is one call of Decide under way.
type decision struct {
	in   Input
	now  time.Time
	pod  *corev1.Pod // nil for an orphan
	mem  Memory
	plan Plan

	containers []*container // in the order of the spec: init, main, ephemeral; then strays
	told       map[string]bool
	// sandbox is where containers belong: the newest one if it is ready and as
	// the spec wants it. sandboxBusy says that it can not be used right now.
	sandbox     *runtime.Sandbox
	sandboxBusy bool
	// initialized says that main containers may run; until then, nextInit is
	// the init container (by place among the init containers) that is due.
	initialized bool
	nextInit    int
	// restartAll is the container whose exit asks to restart all of them.
	restartAll *container
}

func newDecision(in Input) *decision {
	d := &decision{in: in, now: in.Now, pod: in.Want.Pod, mem: in.Mem, told: map[string]bool{}}
	d.mem.Asked = cloneMap(in.Mem.Asked)
	d.mem.StoppedSandboxes = cloneMap(in.Mem.StoppedSandboxes)
	return d
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

// held says that the pod has to wait for an older one. What the runtime shows
// under its UID may be the older one's, and is none of its business.
func (d *decision) held() bool { return d.in.Want.Held && d.mem.Phase == Queued }

// unseen is the plan as long as nothing is known of the pod in the runtime:
// say what was said last, do nothing.
func (d *decision) unseen() Plan {
	stop := d.in.Want.Stop
	if d.held() && stop != nil && stop.Reason.Leaves() && d.in.Seen.Runtime.Empty() {
		d.mem.Ending, d.mem.Phase = stop, Finished // it never came to anything
	}
	status := corev1.PodStatus{Phase: corev1.PodPending}
	if old := d.oldStatus(); old != nil {
		status = *old.DeepCopy()
	}
	return Plan{Mem: d.mem, Status: status}
}

// finish hands out the plan with the memory for the next call.
func (d *decision) finish() Plan {
	d.mem.Containers = make(map[string]ContainerMemory, len(d.containers))
	for _, c := range d.containers {
		d.mem.Containers[c.name] = c.mem
	}
	d.mem.Told = d.told
	d.plan.Mem = d.mem
	return d.plan
}

// wakeAt asks to be called again at t.
func (d *decision) wakeAt(t time.Time) {
	if t.After(d.now) && (d.plan.Wake.IsZero() || t.Before(d.plan.Wake)) {
		d.plan.Wake = t
	}
}
