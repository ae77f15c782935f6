package node

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// PodView is one pod at one moment. It shares what it points to: read only.
type PodView struct {
	UID       string
	Namespace string
	Name      string
	// Source named the pod; empty: it was found in the runtime or on disk.
	Source string
	Static bool
	Pod    *corev1.Pod // nil for an orphan
	Phase  lifecycle.Phase
	// Leaving pods were asked to go and leave nothing.
	Leaving bool
	// Released says that nothing of the pod takes room on the node any more.
	Released bool
	Status   corev1.PodStatus
}

// Pods is a snapshot of all pods, in no order. Two views have the same UID
// while a pod waits for its own predecessor to go.
func (n *Node) Pods() []PodView {
	n.mu.Lock()
	defer n.mu.Unlock()
	views := make([]PodView, 0, len(n.table.all))
	for rec := range n.table.all {
		if rec.actor != nil {
			views = append(views, rec.viewNow())
		}
	}
	return views
}

// Pod is the newest pod of that UID.
func (n *Node) Pod(uid string) (PodView, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rec := n.table.byUID[uid]
	if rec == nil || rec.actor == nil {
		return PodView{}, false
	}
	return rec.viewNow(), true
}

// viewNow is what the pod last told, and whether it was asked to go since. The
// lock is held.
func (rec *record) viewNow() PodView {
	view := *rec.view.Load()
	view.Leaving = rec.leaving
	return view
}

// Trace is what the pod's actor decided of late; false: no such pod.
func (n *Node) Trace(uid string) (podactor.Trace, bool, error) {
	actor := n.actor(uid)
	if actor == nil {
		return podactor.Trace{}, false, nil
	}
	trace, err := actor.Trace()
	return trace, true, err
}

// Probe brings the prober's word on one container; false: no such pod.
func (n *Node) Probe(uid, container string, probe lifecycle.Probe) bool {
	actor := n.actor(uid)
	if actor != nil {
		actor.Probe(container, probe)
	}
	return actor != nil
}

// Tell hands out an event about the pod; false: no such pod.
func (n *Node) Tell(uid string, event lifecycle.Event) bool {
	actor := n.actor(uid)
	if actor != nil {
		actor.Tell(event)
	}
	return actor != nil
}

// Poke makes the pod look at the runtime again; false: no such pod.
func (n *Node) Poke(uid string) bool {
	actor := n.actor(uid)
	if actor != nil {
		actor.Poke()
	}
	return actor != nil
}

// Exists says whether anything of the pod of that UID may be on the node:
// also of one that no source has named yet, that is going, or that waits.
func (n *Node) Exists(uid string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	rec := n.table.byUID[uid]
	if rec == nil {
		return false
	}
	view := rec.view.Load()
	return view == nil || view.Phase != lifecycle.Finished
}

// Remind tells a static pod what the API server has of it, which its source
// does not know: what an agent before this one told of it, and the conditions
// that others set. It is kept until the next call; false: no such pod.
func (n *Node) Remind(uid string, told *corev1.PodStatus) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	rec := n.table.byUID[uid]
	if rec == nil || rec.actor == nil || !rec.want.Static {
		return false
	}
	want := rec.want
	want.Prior = told
	n.rewish(rec, want)
	return true
}

// News says that something has changed that the pod of that UID may wait for,
// such as a ConfigMap that it names: it looks again soon. False: no such pod.
func (n *Node) News(uid string) bool {
	actor := n.actor(uid)
	if actor != nil {
		actor.News()
	}
	return actor != nil
}

// tellWaiting lets the pods that an admitter told to come later ask again: there
// is more room on the node.
func (n *Node) tellWaiting() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for rec := range n.waiting {
		if rec.actor != nil {
			rec.actor.News()
		}
	}
}

// StopPod ends a pod whose source still wants it: for eviction, shutdown and
// preemption. A stop is for good; false: no such pod.
func (n *Node) StopPod(uid string, stop lifecycle.Stop) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	rec := n.table.byUID[uid]
	if rec == nil || rec.actor == nil {
		return false
	}
	n.rewish(rec, withStop(rec.want, stop))
	return true
}

// actor is the actor of the pod of that UID that exists on the node, else of
// the one that waits.
func (n *Node) actor(uid string) *podactor.Actor {
	n.mu.Lock()
	defer n.mu.Unlock()
	rec := n.table.holder(uid)
	if rec == nil {
		rec = n.table.byUID[uid]
	}
	if rec == nil {
		return nil
	}
	return rec.actor
}

func withStop(want lifecycle.Want, stop lifecycle.Stop) lifecycle.Want {
	want.Stop = &stop
	return want
}

// recordSink keeps the view of one record and hands its status on.
type recordSink struct {
	node  *Node
	rec   *record
	moved func()
}

func (s recordSink) PodStatus(update podactor.StatusUpdate) {
	s.rec.telling.Lock()
	defer s.rec.telling.Unlock()
	s.rec.told = &update
	s.tell(update)
}

// Retell tells the status of the pod of that UID once more, as a mutator of
// statuses would now say something else. It blocks for as long as sinks do; false: no
// such pod, or nothing was told of it yet.
func (n *Node) Retell(uid string) bool {
	n.mu.Lock()
	rec := n.table.byUID[uid]
	n.mu.Unlock()
	if rec == nil {
		return false
	}
	rec.telling.Lock()
	defer rec.telling.Unlock()
	if rec.told == nil {
		return false
	}
	recordSink{node: n, rec: rec, moved: func() {}}.tell(*rec.told)
	return true
}

// tell hands a status on. The record's lock for that is held.
func (s recordSink) tell(update podactor.StatusUpdate) {
	update = mutateStatus(s.node.groups.status, update, s.node.log)
	view := *s.rec.view.Load()
	rose := update.Phase != view.Phase
	view.Pod, view.Phase, view.Status = update.Pod, update.Phase, update.Status
	freed := update.Released && !view.Released
	view.Released = update.Released
	// A merge or stop may change Leaving at any time; the record has the last word.
	s.node.mu.Lock()
	view.Leaving = s.rec.leaving
	s.rec.view.Store(&view)
	if update.Later {
		s.node.waiting[s.rec] = struct{}{}
	} else {
		delete(s.node.waiting, s.rec)
	}
	s.node.mu.Unlock()
	if freed {
		s.node.tellWaiting()
	}
	if rose {
		s.moved()
	}
	if observe := s.node.parts.Observer.PodStatus; observe != nil {
		observe(view)
	}
	for _, sink := range s.node.parts.StatusSinks {
		contain(s.node.log, "status sink", func() { sink.PodStatus(update) })
	}
}

// eventFan hands events to all sinks.
type eventFan struct {
	sinks []EventSink
	log   *slog.Logger
}

func (f eventFan) PodEvent(event podactor.PodEvent) {
	for _, sink := range f.sinks {
		contain(f.log, "event sink", func() { sink.PodEvent(event) })
	}
}

// contain keeps a panic of one sink from the others.
func contain(log *slog.Logger, name string, call func()) {
	if err := tasks.Contain(name, func() error { call(); return nil }); err != nil {
		log.Error("a sink failed", "err", err)
	}
}
