package lifecycle

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/runtime"
)

// exitUnknown is the exit code of a container whose end nobody saw.
const (
	exitUnknown = 137
	reasonLost  = "ContainerStatusUnknown"
	messageLost = "The container could not be located when the pod was terminated"
	// for one that is gone while its pod lives; the two spaces are the stock's
	messageGone    = "The container could not be located when the pod was deleted.  The container used to be Running"
	unnamedRun     = "unnamed" // a run that a status tells of without an ID
	idSeparator    = "://"
	reasonComplete = "Completed"
	reasonError    = "Error"
)

// observe turns what was seen and what is remembered into what is the case.
func (d *decision) observe() {
	d.containers = d.newContainers()
	for _, c := range d.containers {
		d.recall(c)
		d.noteRun(c)
		d.noteEnd(c)
		d.noteBackoff(c)
		d.noteStartFailure(c)
	}
	d.noteStartTime()
	d.noteStoppedSandboxes()
	d.findSandbox()
	d.findRestartAll()
	d.findInitProgress()
}

// recall fills an empty memory from the status that the API server has.
func (d *decision) recall(c *container) {
	if _, known := d.in.Mem.Containers[c.name]; known || d.in.Want.Prior == nil {
		return
	}
	st, found := statusOf(d.in.Want.Prior, c.name)
	if !found {
		return
	}
	c.mem.Restarts = st.RestartCount
	c.mem.Ran = st.RestartCount > 0
	last := st.State.Terminated
	if last == nil || neverStarted(&st) {
		last = st.LastTerminationState.Terminated
	}
	run := ""
	if last != nil {
		c.mem.Last, c.mem.LastID = last, nameRun(last.ContainerID)
		run = c.mem.LastID
	}
	if st.State.Running != nil {
		run = nameRun(st.ContainerID)
	}
	if run != "" {
		c.mem.Ran = true
		c.mem.Run = Run{ID: run, Attempt: uint32(st.RestartCount)}
	}
	c.mem.Anew = len(c.runs) == 0 && st.State.Running == nil && toldOfRestartAll(d.in.Want.Prior)
}

// neverStarted says that the end that a status tells of was given, when its pod
// ended, to a container that never ran (see settleLost): a pod that begins anew,
// as a static one does, has yet to start it.
func neverStarted(st *corev1.ContainerStatus) bool {
	end := st.State.Terminated
	return end != nil && end.Reason == reasonLost && end.Message == messageLost &&
		end.ContainerID == "" && st.ContainerID == "" && st.RestartCount == 0
}

// nameRun takes the runtime's prefix off a container ID of a status.
func nameRun(id string) string {
	if _, bare, found := strings.Cut(id, idSeparator); found {
		return bare
	}
	if id == "" {
		return unnamedRun
	}
	return id
}

// noteRun remembers the newest run.
func (d *decision) noteRun(c *container) {
	if len(c.runs) == 0 {
		return
	}
	newest := c.runs[0]
	m := &c.mem
	m.Restarts = max(m.Restarts, restartCount(newest))
	m.Ran = true
	if newest.ID == m.Run.ID {
		m.Run.SandboxID = newest.SandboxID
		return
	}
	if m.Run.ID != "" && newest.Attempt < m.Run.Attempt {
		return // the newest one vanished, this is one of those before it
	}
	m.Run = Run{ID: newest.ID, SandboxID: newest.SandboxID, Attempt: newest.Attempt}
	m.Anew = false
	m.StartFailure = nil
	if m.HookDue {
		m.HookDue, m.HookID = false, newest.ID
	}
}

// restartCount is what the run's annotation tells, else its attempt.
func restartCount(r runtime.Container) int32 {
	if n, err := strconv.ParseInt(r.Annotations[runtime.AnnotationRestartCount], 10, 32); err == nil {
		return int32(n)
	}
	return int32(r.Attempt)
}

// noteEnd finds out how the newest run ended, if it did.
func (d *decision) noteEnd(c *container) {
	m := &c.mem
	if m.Run.ID == "" {
		return
	}
	shown := false
	for _, r := range c.runs {
		if r.ID != m.Run.ID {
			continue
		}
		shown = true
		if r.State == runtime.ContainerExited {
			m.Last, m.LastID = terminated(r, d.in.Want.Rules.RuntimeName), r.ID
		}
	}
	if !shown && m.LastID != m.Run.ID && c.flight == nil {
		m.Last, m.LastID = d.lost(c), m.Run.ID
	}
	if m.LastID == m.Run.ID && m.Last != nil && !m.Anew {
		c.end = &end{id: m.LastID, sandboxID: m.Run.SandboxID, exit: m.Last.ExitCode}
	}
}

// lost is the end of a run that was last seen running and left no trace.
func (d *decision) lost(c *container) *corev1.ContainerStateTerminated {
	end := &corev1.ContainerStateTerminated{
		ExitCode: exitUnknown, Reason: reasonLost, Message: messageGone,
		FinishedAt: stamp(d.now), ContainerID: containerID(d.in.Want.Rules, c.mem.Run.ID),
	}
	if old, found := d.oldContainerStatus(c); found && old.State.Running != nil && old.ContainerID == end.ContainerID {
		end.StartedAt = old.State.Running.StartedAt
	}
	return end
}

// terminated is the API's view of a run that ended.
func terminated(r runtime.Container, runtimeName string) *corev1.ContainerStateTerminated {
	reason := r.Reason
	switch {
	case reason != "":
	case r.ExitCode == 0:
		reason = reasonComplete
	default:
		reason = reasonError
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: r.ExitCode, Signal: r.Signal, Reason: reason, Message: r.Message,
		StartedAt: stamp(r.StartedAt), FinishedAt: stamp(r.FinishedAt),
		ContainerID: containerID(Rules{RuntimeName: runtimeName}, r.ID),
	}
}

// noteBackoff computes the crash back-off once per run that ended.
func (d *decision) noteBackoff(c *container) {
	m := &c.mem
	if c.end == nil || m.For == c.end.id {
		return
	}
	finished, ran := d.ranFor(c)
	switch {
	case m.KillReason == killChanged && m.KillID == c.end.id:
		m.Backoff = 0 // it did not crash
	case m.For == "":
		m.Backoff = backoffAfterLoss(m.Restarts, ran, d.in.Want.Rules)
	default:
		m.Backoff = nextBackoff(m.Backoff, ran, d.in.Want.Rules)
	}
	m.For, m.Until = c.end.id, finished.Add(m.Backoff)
}

// ranFor is when the run that ended did so, and after how long. What the
// runtime does not tell is taken from the status.
func (d *decision) ranFor(c *container) (finished time.Time, ran time.Duration) {
	started := c.mem.Last.StartedAt.Time
	finished = c.mem.Last.FinishedAt.Time
	for _, r := range c.runs {
		if r.ID == c.end.id { // more exact than whole seconds
			started, finished = r.StartedAt, r.FinishedAt
		}
	}
	if finished.IsZero() {
		finished = d.now
	}
	if started.IsZero() {
		return finished, 0
	}
	return finished, finished.Sub(started)
}

// noteStartFailure remembers a failed start, because the removal of what it
// left behind clears the key's failure.
func (d *decision) noteStartFailure(c *container) {
	f, failed := d.in.Seen.Failed[KeyContainer(c.name)]
	asked := d.mem.Asked[KeyContainer(c.name)]
	if !failed || asked.Kind != StartContainer || c.flight != nil || c.live() != nil {
		return
	}
	old := c.mem.StartFailure
	if old != nil && old.Image == asked.What && old.At.Equal(f.At) {
		return
	}
	inARow := 1
	if old != nil && old.Image == asked.What {
		inARow = old.InARow + 1
	}
	if more := inARow - max(f.Count, 1); more > 0 && !f.RetryAt.IsZero() {
		// Whoever set RetryAt lost count at the removal in between.
		f.RetryAt = f.At.Add(doubled(f.RetryAt.Sub(f.At), more, d.in.Want.Rules.BackoffMax))
	}
	c.mem.StartFailure = &StartFailure{Failure: f, Image: asked.What, InARow: inARow}
}

// noteStartTime finds out since when the node knows the pod.
func (d *decision) noteStartTime() {
	if !d.mem.StartTime.IsZero() {
		return
	}
	d.mem.StartTime = d.now
	if prior := d.in.Want.Prior; prior != nil && prior.StartTime != nil {
		d.mem.StartTime = prior.StartTime.Time
		return
	}
	for _, s := range d.in.Seen.Runtime.Sandboxes {
		if !s.CreatedAt.IsZero() && s.CreatedAt.Before(d.mem.StartTime) {
			d.mem.StartTime = s.CreatedAt
		}
	}
}

// stamp makes an API time. The API keeps whole seconds, and so do we, lest a
// status changes on its way to the API server and back.
func stamp(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.Truncate(time.Second))
}

// containerID is the ID as statuses tell it.
func containerID(rules Rules, id string) string {
	if id == "" || rules.RuntimeName == "" || id == unnamedRun {
		return id
	}
	return rules.RuntimeName + idSeparator + id
}
