package lifecycle

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// The stock kubelet's words for a pod that ran out of time.
const (
	reasonDeadline  = "DeadlineExceeded"
	messageRejected = "Pod was rejected: " // in front of the admitter's
	messageDeadline = "Pod was active on the node longer than the specified deadline"
)

// chooseEnding finds out whether, and why, the pod is to end. Once chosen, the
// end only comes nearer.
func (d *decision) chooseEnding() {
	d.mem.Ending = mergeStop(d.mem.Ending, d.wantedStop())
	if d.mem.Ending == nil {
		d.mem.Ending = d.ownReasonToStop()
	}
	if d.mem.Ending == nil {
		return
	}
	if d.mem.EndingAt.IsZero() {
		d.mem.EndingAt = d.now
	}
	if r := d.mem.Ending.Reason; r == StopEvicted || r == StopShutdown {
		d.mem.Disrupted = true
	}
	if killAt := d.mem.Ending.KillAt(); d.mem.KillAt.IsZero() || killAt.Before(d.mem.KillAt) {
		d.mem.KillAt = killAt
	}
}

// wantedStop is the stop that somebody else wants. A pod without a manifest
// is wanted by nobody; its grace is read from the runtime.
func (d *decision) wantedStop() *Stop {
	stop := d.in.Want.Stop
	if stop == nil && d.pod == nil {
		stop = &Stop{Reason: StopOrphaned}
	}
	if stop == nil {
		return nil
	}
	asked := *stop
	if asked.At.IsZero() {
		asked.At = d.now
	}
	if d.pod == nil && asked.Reason == StopOrphaned {
		if d.mem.Ending != nil {
			// What tells the grace may be removed by now.
			asked.At, asked.Grace = d.mem.Ending.At, d.mem.Ending.Grace
			return &asked
		}
		asked.Grace = d.orphanGrace(asked.Grace)
	}
	return &asked
}

// orphanGrace is the longest grace that the annotations of the pod's
// containers tell; else what the caller said; else the rule's.
func (d *decision) orphanGrace(asked time.Duration) time.Duration {
	grace, told := time.Duration(0), false
	for _, r := range d.in.Seen.Runtime.Containers {
		if g, found := annotatedGrace(r); found {
			grace, told = max(grace, g), true
		}
	}
	switch {
	case told:
		return grace
	case asked > 0:
		return asked
	}
	return d.in.Want.Rules.OrphanGrace
}

// annotatedGrace reads a container's grace; that of a deletion goes first.
func annotatedGrace(r runtime.Container) (time.Duration, bool) {
	for _, name := range []string{
		runtime.AnnotationPodDeletionGracePeriod,
		runtime.AnnotationPodTerminationGracePeriod,
	} {
		if s, err := strconv.ParseInt(r.Annotations[name], 10, 32); err == nil && s >= 0 {
			return Seconds(s), true
		}
	}
	return 0, false
}

// ownReasonToStop finds reasons that lie in the pod itself.
func (d *decision) ownReasonToStop() *Stop {
	stop := &Stop{At: d.now, Grace: d.podGrace()}
	admission := d.in.Seen.Admission
	switch {
	case d.endedBefore():
		stop.Reason = StopCompleted
		stop.StatusReason, stop.Message = d.in.Want.Prior.Reason, d.in.Want.Prior.Message
	case d.completed():
		stop.Reason = StopCompleted
	case admission.Verdict == VerdictReject && !d.leftRunning():
		d.tellRejected()
		stop.Reason, stop.StatusReason, stop.Message = StopRejected, admission.Reason, messageRejected+admission.Message
	case d.deadlineOver():
		stop.Reason, stop.StatusReason, stop.Message = StopDeadline, reasonDeadline, messageDeadline
		d.tell("Deadline", Event{Type: EventNormal, Reason: reasonDeadline, Message: messageDeadline})
	case admission.Verdict == VerdictReject:
		d.tellRejected()
		return nil
	default:
		return nil
	}
	return stop
}

func (d *decision) tellRejected() {
	admission := d.in.Seen.Admission
	d.tell("Rejected", Event{Type: EventWarning, Reason: admission.Reason, Message: admission.Message})
}

// leftRunning says that the pod was rejected although it runs: whoever started
// it, before this agent, found nothing wrong with it. What runs is left alone
// until its deadline, nothing of it is started again, and when the last of it
// ends the pod fails.
func (d *decision) leftRunning() bool {
	admission := d.in.Seen.Admission
	return d.mem.Phase == Queued && admission.Verdict == VerdictReject && !admission.StopsRunning && d.anyActive()
}

// podGrace is the grace of the spec.
func (d *decision) podGrace() time.Duration {
	if s := d.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return Seconds(*s)
	}
	return d.in.Want.Rules.OrphanGrace
}

// endedBefore says that the API server has the pod as ended. Static pods are
// not ended by what a mirror says.
func (d *decision) endedBefore() bool {
	return d.in.Want.Prior != nil && !d.in.Want.Static && terminalPhase(d.in.Want.Prior.Phase)
}

func terminalPhase(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// completed says that no main container runs and none will, or that the pod
// can not be initialized.
func (d *decision) completed() bool {
	if d.restartAll != nil {
		return false
	}
	if d.initFailed() {
		return true
	}
	mains := d.withRole(mainRole)
	for _, c := range mains {
		if c.end == nil || c.active() || d.restarts(c) {
			return false
		}
	}
	return len(mains) > 0
}

// deadlineOver says whether activeDeadlineSeconds are over.
func (d *decision) deadlineOver() bool {
	if d.pod.Spec.ActiveDeadlineSeconds == nil {
		return false
	}
	at := d.mem.StartTime.Add(Seconds(*d.pod.Spec.ActiveDeadlineSeconds))
	d.wakeAt(at)
	return !d.now.Before(at)
}

// raisePhase takes the pod as far as nothing in flight can take back.
func (d *decision) raisePhase() {
	for {
		next := d.nextPhase()
		if next <= d.mem.Phase {
			return
		}
		d.mem.Phase = next
	}
}

func (d *decision) nextPhase() Phase {
	ending := d.mem.Ending != nil
	switch d.mem.Phase {
	case Queued:
		switch {
		case ending:
			return Stopping
		case d.in.Seen.Admission.Verdict == VerdictAdmit:
			return Preparing
		}
	case Preparing:
		switch {
		case ending:
			return Stopping
		case d.anyRan():
			return Running
		}
	case Running:
		if ending {
			return Stopping
		}
	case Stopping:
		if len(d.in.Busy) == 0 && !d.anyActive() {
			return Cleaning
		}
	case Cleaning:
		if d.gone() {
			return Finished
		}
	case Finished:
	}
	return d.mem.Phase
}

// anyRan says whether a container was ever started.
func (d *decision) anyRan() bool {
	for _, c := range d.containers {
		if len(c.runs) > 0 {
			return true
		}
	}
	return false
}
