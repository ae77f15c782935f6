package lifecycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// The stock kubelet's words for containers that wait.
const (
	waitCreating   = "ContainerCreating"
	waitInit       = "PodInitializing"
	waitCrashLoop  = "CrashLoopBackOff"
	unknownWaiting = "CreateContainerError"
)

func (d *decision) statuses(roles ...role) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, c := range d.withRole(roles...) {
		list = append(list, d.containerStatus(c))
	}
	return list
}

// containerStatus is what the API shall say about one container.
func (d *decision) containerStatus(c *container) corev1.ContainerStatus {
	st := corev1.ContainerStatus{Name: c.name, Image: c.spec.Image, RestartCount: c.mem.Restarts}
	st.VolumeMounts = c.volumeMounts()
	if d.cutShort(c) {
		st.State.Waiting, st.LastTerminationState.Terminated = d.neverRan(), c.mem.Last
		d.addHealth(c, &st)
		return st
	}
	d.addRun(c, &st)
	running := c.running()
	switch waiting := d.waiting(c); {
	case running != nil && neverSeenRunning(*running):
		if !d.heldState(c, &st) {
			st.State.Waiting, st.LastTerminationState.Terminated = d.neverRan(), c.mem.Last
		}
	case running != nil:
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(running.StartedAt)}
		st.LastTerminationState.Terminated = d.lastEnd(c, running.ID)
	case waiting != nil:
		st.State.Waiting = waiting
		st.LastTerminationState.Terminated = c.mem.Last
	case c.mem.Last != nil:
		st.State.Terminated = c.mem.Last
		st.LastTerminationState.Terminated = d.lastEnd(c, c.mem.LastID)
	case c.mem.Ran && d.heldState(c, &st):
	default:
		st.State.Waiting = d.neverRan()
	}
	d.addHealth(c, &st)
	return st
}

// heldState keeps the state told last of a run that is not to be seen right
// now while a flight works on it. It reports whether there was one.
func (d *decision) heldState(c *container, st *corev1.ContainerStatus) bool {
	old, found := d.oldContainerStatus(c)
	if !found || old.ContainerID != st.ContainerID {
		return false
	}
	st.State, st.LastTerminationState = old.State, old.LastTerminationState
	return true
}

// running is the newest run if it is shown as running. A run in state unknown
// counts: nobody knows that it ended.
func (c *container) running() *runtime.Container {
	r := c.live()
	if r == nil || r.ID != c.runs[0].ID {
		return nil
	}
	return r
}

// neverSeenRunning says that nobody knows of a start: a runtime that was killed
// while it started the container may call its state unknown afterwards. Whoever
// was told that it runs would see it restarted.
func neverSeenRunning(r runtime.Container) bool {
	return r.State == runtime.ContainerUnknown && r.StartedAt.IsZero()
}

// addRun names the newest run and its image.
func (d *decision) addRun(c *container, st *corev1.ContainerStatus) {
	if c.mem.Run.ID == "" {
		return
	}
	st.ContainerID = containerID(d.in.Want.Rules, c.mem.Run.ID)
	st.Resources = c.spec.Resources.DeepCopy()
	st.AllocatedResources = c.spec.Resources.DeepCopy().Requests
	for _, r := range c.runs {
		if r.ID == c.mem.Run.ID {
			st.ImageID = r.ImageID
			if r.Image != "" {
				st.Image = r.Image
			}
			st.User = apiUser(r.User)
			st.StopSignal = d.stopSignal(r)
			return
		}
	}
	if old, found := d.oldContainerStatus(c); found && old.ContainerID == st.ContainerID {
		st.Image, st.ImageID, st.User, st.StopSignal = old.Image, old.ImageID, old.User, old.StopSignal
	}
}

func (d *decision) stopSignal(r runtime.Container) *corev1.Signal {
	if !d.in.Want.Rules.StopSignals || r.StopSignal == "" {
		return nil
	}
	signal := corev1.Signal(r.StopSignal)
	return &signal
}

func apiUser(u *runtime.ContainerUser) *corev1.ContainerUser {
	if u == nil {
		return nil
	}
	return &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: u.UID, GID: u.GID, SupplementalGroups: u.SupplementalGroups}}
}

// volumeMounts are the mounts of the spec, with what became of those that are
// to be read-only recursively: IfPossible is decided when a container is made.
func (c *container) volumeMounts() []corev1.VolumeMountStatus {
	var list []corev1.VolumeMountStatus
	for _, m := range c.spec.VolumeMounts {
		st := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			if c.recursivelyReadOnly(m) {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			st.RecursiveReadOnly = &mode
		}
		list = append(list, st)
	}
	return list
}

func (c *container) recursivelyReadOnly(m corev1.VolumeMount) bool {
	switch {
	case m.RecursiveReadOnly == nil:
		return false
	case *m.RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled:
		return true // else the container could not be made
	}
	return len(c.runs) > 0 && slices.Contains(c.runs[0].RecursiveReadOnly, m.MountPath)
}

// waiting says what a container that should start waits for, if it is worth
// telling: something is wrong, or it runs for the first time.
func (d *decision) waiting(c *container) *corev1.ContainerStateWaiting {
	if d.mem.Ending != nil || d.leftRunning() || c.live() != nil || d.restartAll != nil || !d.wantsStart(c) {
		return nil
	}
	if c.mem.Ran && d.now.Before(c.mem.Until) {
		return d.crashLoop(c)
	}
	if f := c.mem.StartFailure; d.startFailed(c) && !d.pullFailedAfter(c, f.At) {
		reason := f.Reason
		if reason == "" {
			reason = unknownWaiting
		}
		return &corev1.ContainerStateWaiting{Reason: reason, Message: f.Message}
	}
	return d.imageWaiting(c)
}

func (d *decision) crashLoop(c *container) *corev1.ContainerStateWaiting {
	d.wakeAt(c.mem.Until)
	where := fmt.Sprintf("%s_%s(%s)", d.in.Want.Name, d.in.Want.Namespace, d.in.Want.UID)
	d.tell("BackOff/"+c.mem.For, Event{
		Type: EventWarning, Reason: "BackOff", Container: c.name,
		Message: fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.name, where),
	})
	return &corev1.ContainerStateWaiting{
		Reason: waitCrashLoop,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s",
			c.mem.Backoff, c.name, where),
	}
}

// neverRan is the state of a container that was never started.
func (d *decision) neverRan() *corev1.ContainerStateWaiting {
	if len(d.pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: waitInit}
	}
	return &corev1.ContainerStateWaiting{Reason: waitCreating}
}

// lastEnd is how the run before the one with that ID ended.
func (d *decision) lastEnd(c *container, id string) *corev1.ContainerStateTerminated {
	for _, r := range c.runs {
		if r.ID != id && r.State == runtime.ContainerExited {
			return terminated(r, d.in.Want.Rules.RuntimeName)
		}
	}
	if c.mem.LastID != "" && c.mem.LastID != id {
		return c.mem.Last
	}
	// The runtime keeps it no more; what was told stays told.
	if old, found := d.oldContainerStatus(c); found && old.ContainerID == containerID(d.in.Want.Rules, id) {
		return old.LastTerminationState.Terminated
	}
	return nil
}

// addHealth sets started and ready. A plain init container is ready when it
// succeeded.
func (d *decision) addHealth(c *container, st *corev1.ContainerStatus) {
	if c.role == ephemeralRole {
		return
	}
	started := false
	if st.State.Running != nil {
		started = d.started(c)
	}
	st.Started = &started
	switch {
	case c.role == initRole:
		st.Ready = st.State.Terminated != nil && st.State.Terminated.ExitCode == 0
	case st.State.Running != nil:
		st.Ready = d.ready(c)
	}
}

// settleLost gives an end to containers of a pod that is over and that nobody
// saw ending: never started must not look like success (k/k#107845).
func (d *decision) settleLost(s *corev1.PodStatus) {
	if d.pod == nil || !d.cameToMains(s) {
		d.settleInits(s.InitContainerStatuses)
		return
	}
	d.settleInits(s.InitContainerStatuses)
	for i := range s.ContainerStatuses {
		settle(&s.ContainerStatuses[i])
	}
}

// settleInits leaves out the init containers at the end of the list that never
// started, but not the first of the list.
func (d *decision) settleInits(inits []corev1.ContainerStatus) {
	last := len(inits) - 1
	for last > 0 && inits[last].State.Waiting != nil && inits[last].LastTerminationState.Terminated == nil {
		last--
	}
	for i := 0; i <= last; i++ {
		settle(&inits[i])
	}
}

// cameToMains says whether the pod got past its init containers, as far as is
// known now or was told before.
func (d *decision) cameToMains(s *corev1.PodStatus) bool {
	inits := s.InitContainerStatuses
	if len(inits) == 0 || d.initialized || d.toldOfMainEnds() {
		return true
	}
	for _, st := range s.ContainerStatuses {
		if st.State.Waiting == nil || st.LastTerminationState.Terminated != nil {
			return true
		}
	}
	last := inits[len(inits)-1].State.Terminated
	return last != nil && last.ExitCode == 0
}

func (d *decision) toldOfMainEnds() bool {
	old := d.oldStatus()
	return old != nil && slices.ContainsFunc(old.ContainerStatuses, func(st corev1.ContainerStatus) bool {
		return st.State.Terminated != nil
	})
}

func settle(st *corev1.ContainerStatus) {
	if st.State.Terminated != nil {
		return
	}
	st.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exitUnknown, Reason: reasonLost, Message: messageLost, ContainerID: st.ContainerID,
	}}
	started := false
	st.Started, st.Ready = &started, false
}
