package podactor

import (
	"reflect"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
)

// publish hands the status out if it changed since the last time. Before the
// first look nothing is known, and to say so would make the status of a pod
// flap that has been running all the time.
func (r *run) publish(plan lifecycle.Plan) (changed bool) {
	if !r.seen.Looked && !r.want.Held {
		return false
	}
	update := StatusUpdate{
		UID: r.want.UID, Namespace: r.want.Namespace, Name: r.want.Name,
		Pod: r.want.Pod, Static: r.want.Static,
		Phase: plan.Mem.Phase, Status: plan.Status, Informed: r.want.Prior != nil,
		Later:    plan.Mem.Phase == lifecycle.Queued && r.seen.Admission.Verdict == lifecycle.VerdictLater,
		Released: plan.Mem.Phase >= lifecycle.Cleaning && r.seen.CgroupGone,
	}
	if last := r.published; last != nil && reflect.DeepEqual(last.Status, update.Status) && sameButStatus(*last, update) {
		return false
	}
	r.published = &update
	if r.parts.Status != nil {
		r.sink("status sink", func() { r.parts.Status.PodStatus(update) })
	}
	return true
}

func sameButStatus(a, b StatusUpdate) bool {
	return a.Phase == b.Phase && a.Pod == b.Pod && a.Informed == b.Informed && a.Later == b.Later && a.Released == b.Released
}

// tell hands events out.
func (r *run) tell(events []lifecycle.Event) {
	for _, event := range events {
		r.log.Debug("event", "reason", event.Reason, "container", event.Container, "message", event.Message)
		if r.parts.Events == nil {
			continue
		}
		r.sink("event sink", func() {
			r.parts.Events.PodEvent(PodEvent{
				UID: r.want.UID, Namespace: r.want.Namespace, Name: r.want.Name, Pod: r.want.Pod, Event: event,
			})
		})
	}
}

// sink keeps a vendor's panic out of the actor.
func (r *run) sink(name string, call func()) {
	if err := tasks.Contain(name, func() error { call(); return nil }); err != nil {
		r.log.Error("a sink failed", "err", err)
	}
}
