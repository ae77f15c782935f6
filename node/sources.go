package node

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// wants are the pods of one source by UID.
type wants map[string]*record

// apiSource is the value of the annotation [runtime.AnnotationConfigSource]
// on pods of the API server.
const apiSource = "api"

// startSources runs every source; one that fails runs again later.
func (d *dispatcher) startSources() {
	for _, source := range d.groups.sources {
		d.inputs.Go("source "+source.Name, func(ctx context.Context) error {
			d.runSource(ctx, source)
			return nil
		})
	}
}

func (d *dispatcher) runSource(ctx context.Context, source Ordered[Source]) {
	wait := d.cfg.RetryBase
	for {
		start := time.Now()
		err := d.relay(ctx, source)
		if ctx.Err() != nil {
			return
		}
		if time.Since(start) > d.cfg.RetryMax { // worked for a while
			wait = d.cfg.RetryBase
		}
		d.log.Error("source ended; starting it again", "source", source.Name, "retryIn", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, d.cfg.RetryMax)
	}
}

// relay runs the source once and puts its name on its updates, so that no
// source can speak for another.
func (d *dispatcher) relay(ctx context.Context, source Ordered[Source]) error {
	updates := make(chan SourceUpdate)
	group := tasks.New(ctx)
	group.Go("relay", func(ctx context.Context) error {
		for {
			select {
			case update := <-updates:
				update.Source = source.Name
				select {
				case d.updates <- update:
				case <-ctx.Done():
					return ctx.Err()
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	err := tasks.Contain("source "+source.Name, func() error { return source.Value.Run(group.Context(), updates) })
	group.Stop()
	_ = group.Wait() // relay fails only by ctx
	return err
}

// sourceUpdate brings the pods of one source up to date: first what is gone,
// as what is new may wait for it.
func (d *dispatcher) sourceUpdate(update SourceUpdate) {
	if observe := d.parts.Observer.SourceUpdate; observe != nil {
		observe(update.Source, len(update.Pods))
	}
	first := !d.reported[update.Source]
	d.reported[update.Source] = true
	have := d.wants[update.Source]
	for _, uid := range gone(have, update) {
		d.remove(update.Source, uid)
	}
	pods := update.Pods
	if first || len(pods) > 1 { // oldest first into the line for the runtime
		pods = slices.SortedStableFunc(slices.Values(pods), byAge)
	}
	var added []string
	for _, pod := range pods {
		switch rec := have[string(pod.UID)]; {
		case rec == nil:
			d.add(update.Source, pod)
			added = append(added, string(pod.UID))
		case rec.given != pod:
			d.change(rec, pod)
		}
	}
	for _, uid := range added {
		d.supersedeFound(update.Source, have[uid])
	}
	d.clarity(update)
}

// clarity notes whether the source names all that it wants. What was left
// alone for its sake is looked at again when it does.
func (d *dispatcher) clarity(update SourceUpdate) {
	if update.Unclear == d.unclear[update.Source] {
		return
	}
	if update.Unclear {
		d.unclear[update.Source] = true
		d.log.Warn("a source may want more than it can read; pods of it that nobody names are left alone until it is clear",
			"source", update.Source)
		return
	}
	delete(d.unclear, update.Source)
	d.log.Info("a source is clear again", "source", update.Source)
	d.startScan()
}

// supersedeFound takes away a pod that an earlier agent left running and that
// a new pod of the same static name waits for, if it came from the same source:
// the manifest has changed in between. Other sources may yet name theirs.
func (d *dispatcher) supersedeFound(source string, rec *record) {
	if rec == nil || !d.wish(rec).Held {
		return
	}
	for _, found := range d.foundInTheWay(rec) {
		if found.foundFrom == source {
			d.beginOrphan(found)
		}
	}
}

func (d *dispatcher) foundInTheWay(rec *record) (found []*record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, lock := range rec.locks {
		for _, holder := range d.table.holders[lock] {
			if holder.actor == nil && holder.foundFrom != "" && !slices.Contains(found, holder) {
				found = append(found, holder)
			}
		}
	}
	return found
}

// gone lists the UIDs that an update takes away.
func gone(have wants, update SourceUpdate) []string {
	var uids []string
	if update.Partial {
		for _, uid := range update.Removed {
			if have[string(uid)] != nil {
				uids = append(uids, string(uid))
			}
		}
		return uids
	}
	named := make(map[string]bool, len(update.Pods))
	for _, pod := range update.Pods {
		named[string(pod.UID)] = true
	}
	for uid := range have {
		if !named[uid] {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// add takes in a pod that its source did not want before.
func (d *dispatcher) add(source string, pod *corev1.Pod) {
	uid := string(pod.UID)
	if owner, taken := d.owner[uid]; taken {
		d.log.Error("two sources name the same pod; the first has it",
			"pod", pod.Namespace+"/"+pod.Name, "uid", uid, "source", source, "first", owner)
		return
	}
	want := d.wantFor(source, pod)
	if mutated, err := d.mutate(pod); err == nil {
		want.Pod = mutated
	} else {
		want = withStop(want, lifecycle.Stop{
			Reason: lifecycle.StopRejected, StatusReason: "MutatorError", Message: err.Error(), At: time.Now(),
		})
	}
	rec := d.incarnate(source, pod, want)
	d.owner[uid] = source
	d.wants[source][uid] = rec
	if rec.want.Held {
		d.log.Info("pod waits for an older one of its UID or static name to go",
			"pod", pod.Namespace+"/"+pod.Name, "uid", uid, "source", source)
	}
	d.begin(rec)
}

// incarnate makes the record of a new pod, or takes over the one of a pod that
// was found in the runtime.
func (d *dispatcher) incarnate(source string, pod *corev1.Pod, want lifecycle.Want) *record {
	d.mu.Lock()
	defer d.mu.Unlock()
	locks := locksOf(want.UID, want.Namespace, want.Name, want.Static)
	if found := d.table.byUID[want.UID]; found != nil && found.actor == nil {
		found.source, found.given, found.want, found.locks = source, pod, want, locks
		d.table.enterExisting(found)
		return found
	}
	rec := &record{
		uid: want.UID, namespace: want.Namespace, name: want.Name,
		source: source, given: pod, want: want, locks: locks,
	}
	rec.leaving = want.Stop != nil && want.Stop.Reason.Leaves()
	rec.want.Held = d.table.enter(rec)
	return rec
}

// change passes on what is new about a pod.
func (d *dispatcher) change(rec *record, pod *corev1.Pod) {
	old := rec.given
	rec.given = pod
	if rec.finished {
		return // gone from the node; its source just has not noticed yet
	}
	want := d.wantFor(rec.source, pod)
	if want.Static && d.pastRunning(rec) && !reflect.DeepEqual(old.Spec, pod.Spec) {
		// The manifest of a pod that ended has changed: it runs anew.
		d.remove(rec.source, rec.uid)
		d.add(rec.source, pod)
		return
	}
	var err error
	if want.Pod, err = d.changed(pod); err != nil {
		want.Pod = d.wish(rec).Pod
		d.refuse(rec, want.Pod, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rewish(rec, want)
}

// changed is the pod to go on with after a change. What keeps a pod from being
// admitted refuses a change, too: admission is not asked again.
func (d *dispatcher) changed(pod *corev1.Pod) (*corev1.Pod, error) {
	mutated, err := d.mutate(pod)
	if err != nil {
		return nil, reasoned.New("MutatorError", err)
	}
	return mutated, tasks.Contain("Check", func() error { return d.parts.Specs.Check(mutated) })
}

// refuse tells that a change is not acted on.
func (d *dispatcher) refuse(rec *record, kept *corev1.Pod, err error) {
	d.log.Error("change refused; the pod stays as it was",
		"pod", rec.namespace+"/"+rec.name, "uid", rec.uid, "err", err)
	d.actors.Events.PodEvent(podactor.PodEvent{
		UID: rec.uid, Namespace: rec.namespace, Name: rec.name, Pod: kept,
		Event: lifecycle.Event{
			Type: lifecycle.EventWarning, Reason: reasoned.Reason(err, "UnsupportedField"),
			Message: "change refused; the pod stays as it was: " + err.Error(),
		},
	})
}

// pastRunning says that the pod is past running.
func (d *dispatcher) pastRunning(rec *record) bool {
	return rec.view.Load().Phase >= lifecycle.Stopping
}

// remove ends a pod that its source does not want any more.
func (d *dispatcher) remove(source, uid string) {
	rec := d.wants[source][uid]
	delete(d.wants[source], uid)
	delete(d.owner, uid)
	if rec.finished {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rewish(rec, withStop(rec.want, lifecycle.Stop{
		Reason: lifecycle.StopDeleted, At: time.Now(), Grace: graceOf(rec.want.Pod, d.rules),
	}))
}

// wantFor is what a source's pod asks for, before mutators.
func (d *dispatcher) wantFor(source string, pod *corev1.Pod) lifecycle.Want {
	want := lifecycle.Want{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name,
		Pod: pod, Static: isStatic(source, pod), Rules: d.rules,
	}
	if pod.Status.Phase != "" && !want.Static { // what the API server has of a static pod, its mirror tells
		want.Prior = &pod.Status
	}
	if pod.DeletionTimestamp != nil { // counted from when the node hears of it, whatever the clocks say
		want.Stop = &lifecycle.Stop{
			Reason: lifecycle.StopDeleted, At: time.Now(), Grace: graceOf(pod, d.rules),
		}
	}
	return want
}

// isStatic says that the pod does not come from the API server.
func isStatic(source string, pod *corev1.Pod) bool {
	if from, ok := pod.Annotations[runtime.AnnotationConfigSource]; ok {
		return from != apiSource
	}
	return source != apiSource
}

// mutate runs the mutators in order.
func (d *dispatcher) mutate(pod *corev1.Pod) (*corev1.Pod, error) {
	for _, m := range d.groups.mutators {
		err := named("mutator", m.Name, "Mutate", func() (err error) {
			pod, err = m.Value.Mutate(pod)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return pod, nil
}
