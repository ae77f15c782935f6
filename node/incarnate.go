package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// begin makes a record an actor that runs, held or not.
func (d *dispatcher) begin(rec *record) {
	d.orders++
	rec.order = d.orders
	rec.view.Store(&PodView{
		UID: rec.uid, Namespace: rec.namespace, Name: rec.name, Source: rec.source,
		Static: rec.want.Static, Pod: rec.want.Pod, Leaving: rec.leaving,
	})
	actor, err := d.newActor(rec)
	if err != nil {
		d.log.Error("pod can not run", "pod", rec.namespace+"/"+rec.name, "uid", rec.uid, "err", err)
		rec.finished = true
		d.drop(rec)
		return
	}
	d.mu.Lock()
	rec.actor = actor
	d.mu.Unlock()
	if observe := d.parts.Observer.PodAdded; observe != nil {
		observe(*rec.view.Load())
	}
	d.pods.Go("pod", func(ctx context.Context) error { return d.live(ctx, rec, actor) })
}

func (d *dispatcher) newActor(rec *record) (*podactor.Actor, error) {
	parts := d.actors
	parts.Status = recordSink{node: d.Node, rec: rec, moved: d.poke}
	return podactor.New(d.cfg.actor(rec.order), parts, rec.want)
}

func (d *dispatcher) poke() {
	select {
	case d.moved <- struct{}{}:
	default:
	}
}

// live runs an actor to its end. One that fails (a bug: everything it calls is
// contained) starts over, knowing nothing, which is what actors are good at.
func (d *dispatcher) live(ctx context.Context, rec *record, actor *podactor.Actor) error {
	for {
		err := tasks.Contain("pod "+rec.namespace+"/"+rec.name, func() error { return actor.Run(ctx) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			select {
			case d.ended <- rec:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		d.log.Error("pod actor failed; starting over", "pod", rec.namespace+"/"+rec.name, "uid", rec.uid,
			"retryIn", d.cfg.RetryMax, "err", err)
		select {
		case <-time.After(d.cfg.RetryMax):
		case <-ctx.Done():
			return ctx.Err()
		}
		d.mu.Lock()
		if actor, err = d.newActor(rec); err == nil {
			rec.actor = actor
		}
		d.mu.Unlock()
		if err != nil { // can not be: it worked before with the same config and parts
			d.log.Error("pod can not run", "pod", rec.namespace+"/"+rec.name, "uid", rec.uid, "err", err)
			return nil
		}
	}
}

// podEnded forgets a pod of which nothing is left, and lets those start that
// waited for it.
func (d *dispatcher) podEnded(rec *record) {
	rec.finished = true
	if observe := d.parts.Observer.PodRemoved; observe != nil {
		observe(*rec.view.Load())
	}
	d.drop(rec)
}

func (d *dispatcher) drop(rec *record) {
	d.mu.Lock()
	next := d.table.leave(rec)
	delete(d.waiting, rec)
	d.unhold(next)
	d.mu.Unlock()
}

// unhold lets pods start whose turn it is. The lock is held.
func (n *Node) unhold(recs []*record) {
	for _, rec := range recs {
		rec.want.Held = false
		if rec.actor != nil {
			rec.actor.Want(rec.want)
		}
	}
}

// wish is what is wanted of a pod now; others may change it at any time.
func (n *Node) wish(rec *record) lifecycle.Want {
	n.mu.Lock()
	defer n.mu.Unlock()
	return rec.want
}

// rewish merges a new wish into a record's and passes it on. The lock is held.
func (n *Node) rewish(rec *record, next lifecycle.Want) {
	next.Held = rec.want.Held
	rec.want = rec.want.Merge(next)
	rec.leaving = rec.want.Stop != nil && rec.want.Stop.Reason.Leaves()
	rec.actor.Want(rec.want)
}

// graceOf is how long the pod may take to stop.
func graceOf(pod *corev1.Pod, rules lifecycle.Rules) time.Duration {
	switch {
	case pod == nil:
		return rules.OrphanGrace
	case pod.DeletionGracePeriodSeconds != nil:
		return lifecycle.Seconds(*pod.DeletionGracePeriodSeconds)
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return lifecycle.Seconds(*pod.Spec.TerminationGracePeriodSeconds)
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}
