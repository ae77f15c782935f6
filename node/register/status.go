package register

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// heartbeatTries is how often one heartbeat is tried at once; between two
	// tries passes tryPause, doubled each time.
	heartbeatTries = 5
	tryPause       = 100 * time.Millisecond
	// registerPause is the pause after the first registration that failed; it
	// doubles up to registerPauseMax.
	registerPause    = 200 * time.Millisecond
	registerPauseMax = 7 * time.Second
	// jitter spreads the heartbeats of many nodes.
	jitter = 0.04
)

// runStatus registers the node, then keeps its status.
func (r *Registrar) runStatus(ctx context.Context) error {
	r.initial(ctx) // for those who ask before the API server does
	if err := r.firstLook(ctx); err != nil {
		return err
	}
	for {
		wait := r.pass(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		case <-r.kick:
		}
	}
}

// firstLook waits for the first word of the runtime, which comes with a kick.
func (r *Registrar) firstLook(ctx context.Context) error {
	if r.parts.Runtime == nil {
		return nil
	}
	deadline := time.NewTimer(r.cfg.FirstLook)
	defer deadline.Stop()
	for s := r.parts.Runtime(); !s.RuntimeReady && !s.Runtime.Known; s = r.parts.Runtime() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return nil
		case <-r.kick:
		}
	}
	return nil
}

// pass does what is due and returns how long to wait before the next.
func (r *Registrar) pass(ctx context.Context) time.Duration {
	if !r.exists {
		initial := r.initial(ctx)
		if err := r.register(ctx, initial); err != nil {
			if r.grumbles.log(ctx, "register", err) {
				r.log.Warn("Unable to register node with API server; trying again", "node", r.cfg.NodeName, "err", err)
			}
			r.failures++
			return spread(doubled(registerPause, r.failures-1, registerPauseMax), 0.5)
		}
		r.grumbles.settle("register")
	}
	if err := r.heartbeat(ctx); err == nil {
		if lasted, failed := r.grumbles.over("status", time.Now()); failed {
			r.log.Info("Node status is updated again", "node", r.cfg.NodeName, "after", lasted)
		}
	} else if r.grumbles.log(ctx, "status", err) {
		r.log.Warn("Unable to update node status; trying again", "node", r.cfg.NodeName, "err", err)
	}
	return r.untilNext(time.Now())
}

// untilNext is UpdateEvery, or less when a silent runtime makes the node not
// ready before.
func (r *Registrar) untilNext(now time.Time) time.Duration {
	wait := spread(r.cfg.UpdateEvery, jitter)
	if r.parts.Runtime == nil {
		return wait
	}
	if s := r.parts.Runtime(); !s.RuntimeReady && !s.ReadyAt.IsZero() {
		if left := s.ReadyAt.Add(r.cfg.RuntimeGrace).Sub(now); left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// initial builds the Node as a new one would be, and keeps it until the API
// server has one.
func (r *Registrar) initial(ctx context.Context) *corev1.Node {
	n := initialNode(r.cfg)
	r.fill(ctx, nil, n)
	r.node.Store(n)
	return n
}

func (r *Registrar) fill(ctx context.Context, before, n *corev1.Node) {
	problems := fill(ctx, n, r.setters)
	for _, s := range r.setters {
		if err := problems[s.Name]; err == nil {
			r.grumbles.settle(s.Name)
		} else if r.grumbles.log(ctx, s.Name, err) {
			r.log.Warn("Failed to set some node status fields", "node", r.cfg.NodeName, "err", err)
		}
	}
	stamp(before, n, time.Now())
}

// register creates the Node, or finds it.
func (r *Registrar) register(ctx context.Context, initial *corev1.Node) error {
	if !r.cfg.Register {
		r.exists = true
		return nil
	}
	if r.failures == 0 {
		r.parts.Observer.Registering()
		r.log.Info("Attempting to register node", "node", initial.Name)
	}
	created, err := r.create(ctx, initial)
	switch {
	case err == nil:
		r.exists, r.fresh, r.reported = true, true, time.Now()
		r.remember(created)
		r.tell(changes(nil, created))
	case apierrors.IsAlreadyExists(err), apierrors.IsForbidden(err) && !r.cfg.NoGetWhenForbidden:
		existing, getErr := r.get(ctx)
		if getErr != nil {
			return fmt.Errorf("%w; and reading the existing node: %w", err, getErr)
		}
		r.exists = true
		r.remember(existing)
		r.log.Info("Node was previously registered", "node", initial.Name)
	default:
		return err
	}
	r.log.Info("Successfully registered node", "node", initial.Name, "created", created != nil)
	r.parts.Observer.Registered(created != nil)
	return nil
}

// heartbeat tells the status, with a few tries.
func (r *Registrar) heartbeat(ctx context.Context) (err error) {
	for try := range heartbeatTries {
		if try > 0 && !pause(ctx, doubled(tryPause, try-1, time.Second)) {
			return ctx.Err()
		}
		began := time.Now()
		err = r.update(ctx, try)
		r.parts.Observer.Status(time.Since(began), err)
		if err == nil || apierrors.IsNotFound(err) {
			return err
		}
		if try > 0 && ctx.Err() == nil {
			r.parts.HeartbeatFailed()
		}
	}
	return fmt.Errorf("%d tries failed, the last: %w", heartbeatTries, err)
}

// update tells the status if it changed or if it is time to.
func (r *Registrar) update(ctx context.Context, try int) error {
	before, err := r.read(ctx, try)
	if err != nil {
		return err
	}
	r.remember(before)
	r.tellPodCIDR(ctx, before)
	r.tell(schedulable(before, r.cordoned))
	r.cordoned = before.Spec.Unschedulable

	after := before.DeepCopy()
	if r.cfg.Register && !r.fresh {
		initial := initialNode(r.cfg)
		r.fill(ctx, before, initial)
		reconcile(initial, after)
	}
	keepLabels(after)
	r.fill(ctx, before, after)
	patch, changed, err := diff(before, after)
	if err != nil {
		return err
	}
	now := time.Now()
	if !changed && now.Sub(r.reported) < r.cfg.ReportEvery+r.late {
		r.tellChanges(before, before)
		r.noteReady(before)
		return nil
	}
	updated, err := r.patch(ctx, patch)
	if err != nil {
		if r.untold == nil {
			r.untold = before
		}
		return err
	}
	r.late = reportDelay(changed || r.reported.IsZero(), r.cfg.ReportEvery)
	r.fresh, r.reported = true, now
	r.remember(updated)
	r.tellChanges(before, after)
	r.noteReady(updated)
	return nil
}

// reportDelay spreads the reports of many nodes: after a change the next one
// comes at another time, from then on at an even pace.
func reportDelay(changed bool, every time.Duration) time.Duration {
	if !changed {
		return 0
	}
	return time.Duration(float64(every) * (rand.Float64() - 0.5))
}

func (r *Registrar) noteReady(n *corev1.Node) {
	if !r.toldReady && statusOf(n, corev1.NodeReady) == corev1.ConditionTrue {
		r.toldReady = true
		r.parts.Observer.Ready()
	}
}

// tellChanges tells what differs from before to after; where a write between two
// tries seemed to fail and was taken, from what was before that.
func (r *Registrar) tellChanges(before, after *corev1.Node) {
	if r.untold != nil {
		before, r.untold = r.untold, nil
	}
	r.tell(changes(before, after))
}

func (r *Registrar) tell(events []Event) {
	for _, e := range events {
		r.parts.Event(e.Type, e.Reason, e.Message)
	}
}

// tellPodCIDR hands the pod CIDRs on until it works.
func (r *Registrar) tellPodCIDR(ctx context.Context, n *corev1.Node) {
	cidrs := podCIDRs(n)
	if cidrs == "" || cidrs == r.podCIDR || r.parts.PodCIDR == nil {
		return
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	if err := r.parts.PodCIDR(ctx, cidrs); err != nil {
		if r.grumbles.log(ctx, "podCIDR", err) {
			r.log.Warn("Error updating pod CIDR; trying again", "node", r.cfg.NodeName, "podCIDR", cidrs, "err", err)
		}
		return
	}
	r.grumbles.settle("podCIDR")
	r.log.Info("Updating Pod CIDR", "originalPodCIDR", r.podCIDR, "newPodCIDR", cidrs)
	r.podCIDR = cidrs
}

// read is the Node as it was last seen; the first time, and for a further try,
// as the API server has it.
func (r *Registrar) read(ctx context.Context, try int) (*corev1.Node, error) {
	own := r.node.Load()
	if r.parts.Seen == nil || try > 0 || own == nil || own.UID == "" {
		return r.get(ctx)
	}
	bounded, cancel := r.within(ctx)
	seen, err := r.parts.Seen(bounded)
	cancel()
	if err != nil || seen == nil || seen.UID != own.UID {
		return r.get(ctx)
	}
	return newer(seen, own), nil
}

// newer prefers what this agent got as the answer to its own patch while the
// watch has not caught up with it. A watch may leave the images out, which
// nobody else writes.
func newer(seen, own *corev1.Node) *corev1.Node {
	if order, err := resourceversion.CompareResourceVersion(seen.ResourceVersion, own.ResourceVersion); err == nil && order < 0 {
		return own
	}
	if len(seen.Status.Images) == 0 {
		whole := *seen
		whole.Status.Images = own.Status.Images
		return &whole
	}
	return seen
}

// get does not let the client try again by itself: it hides a dead connection
// for as long as the request may take, and the heartbeat has tries of its own.
func (r *Registrar) get(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	out := &corev1.Node{}
	err := r.parts.Core.Get().MaxRetries(0).Resource("nodes").Name(r.cfg.NodeName).Do(ctx).Into(out)
	return out, explain("node "+r.cfg.NodeName, err)
}

func (r *Registrar) create(ctx context.Context, n *corev1.Node) (*corev1.Node, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	out := &corev1.Node{}
	err := r.parts.Core.Post().Resource("nodes").Body(n).Do(ctx).Into(out)
	if err != nil {
		return nil, explain("node "+r.cfg.NodeName, err)
	}
	return out, nil
}

func (r *Registrar) patch(ctx context.Context, patch []byte) (*corev1.Node, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	out := &corev1.Node{}
	err := r.parts.Core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(r.cfg.NodeName).
		SubResource("status").Body(patch).Do(ctx).Into(out)
	return out, explain("status of node "+r.cfg.NodeName, err)
}

// within bounds one request: a heartbeat that takes longer is none.
func (r *Registrar) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(r.cfg.UpdateEvery, r.cfg.LeaseDuration))
}
