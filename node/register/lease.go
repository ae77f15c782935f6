package register

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// aboutLease names the lease's failures: to find it and to renew it is one thing
// to who reads the log.
const aboutLease = "lease"

// leasePauseMax is the longest pause between tries to find or make the lease.
const leasePauseMax = 7 * time.Second

// runLease renews the node's lease four times in its duration. It shares
// nothing with the status loop but the node's UID, so that neither holds the
// other up.
func (r *Registrar) runLease(ctx context.Context) error {
	lease := &leaseKeeper{r: r, grumbles: newGrumbles()}
	for {
		registered := r.awaited()
		lease.renew(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(spread(r.cfg.LeaseDuration/4, jitter)):
		case <-registered: // the first lease comes with the Node
		}
	}
}

// awaited is Registered while that is still to come, else nil, which never is.
func (r *Registrar) awaited() <-chan struct{} {
	select {
	case <-r.registered:
		return nil
	default:
		return r.registered
	}
}

// leaseKeeper is the lease loop's own state.
type leaseKeeper struct {
	r        *Registrar
	latest   *coordinationv1.Lease // as the API server last had it; nil: to be read
	grumbles grumbles
}

// renew writes a new sign of life. A lease that was not changed by others is
// written without reading it first.
func (k *leaseKeeper) renew(ctx context.Context) {
	if k.latest == nil && !k.ensure(ctx) {
		return
	}
	err := k.tryUpdates(ctx)
	if err == nil {
		if lasted, failed := k.grumbles.over(aboutLease, time.Now()); failed {
			k.r.log.Info("Lease is renewed again", "node", k.r.cfg.NodeName, "after", lasted)
		}
		return
	}
	k.latest = nil
	if k.grumbles.log(ctx, aboutLease, err) {
		k.r.log.Warn("Failed to update lease; trying again", "node", k.r.cfg.NodeName, "err", err)
	}
}

// ensure reads the lease, or makes it, until that works. False: ctx ended, or
// the Node is not there yet, which the lease is to belong to.
func (k *leaseKeeper) ensure(ctx context.Context) bool {
	for try := 0; ; try++ {
		lease, err := k.find(ctx)
		if err == nil {
			k.latest = lease
			return lease != nil
		}
		if k.grumbles.more(ctx, aboutLease, err) {
			k.r.log.Warn("Failed to ensure lease exists; trying again", "node", k.r.cfg.NodeName, "err", err)
		}
		if !pause(ctx, spread(doubled(registerPause, try, leasePauseMax), 0.5)) {
			return false
		}
	}
}

// find is the lease as it is, or a new one; nil when there is no Node.
func (k *leaseKeeper) find(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := k.do(ctx, k.get)
	if !apierrors.IsNotFound(err) {
		return lease, err
	}
	uid, err := k.owner(ctx)
	if err != nil || uid == "" {
		return nil, err
	}
	return k.do(ctx, func(ctx context.Context, out *coordinationv1.Lease) error {
		body := signed(nil, k.r.cfg, uid, time.Now())
		return k.r.parts.Coordination.Post().Namespace(corev1.NamespaceNodeLease).Resource("leases").Body(body).Do(ctx).Into(out)
	})
}

// owner is the UID of the Node as it is now; empty when it does not exist, so
// that no lease is made for a Node that was deleted.
func (k *leaseKeeper) owner(ctx context.Context) (types.UID, error) {
	n, err := k.r.get(ctx)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return n.UID, nil
}

func (k *leaseKeeper) tryUpdates(ctx context.Context) (err error) {
	for try := range heartbeatTries {
		if try > 0 && !pause(ctx, doubled(tryPause, try-1, time.Second)) {
			return ctx.Err()
		}
		began := time.Now()
		err = k.update(ctx)
		k.r.parts.Observer.Lease(time.Since(began), err)
		switch {
		case err == nil:
			return nil
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			if !k.ensure(ctx) {
				return err
			}
		case try > 0 && ctx.Err() == nil:
			k.r.parts.HeartbeatFailed()
		}
	}
	return fmt.Errorf("%d tries failed, the last: %w", heartbeatTries, err)
}

func (k *leaseKeeper) update(ctx context.Context) error {
	updated, err := k.do(ctx, func(ctx context.Context, out *coordinationv1.Lease) error {
		body := signed(k.latest, k.r.cfg, k.r.UID(), time.Now())
		return k.r.parts.Coordination.Put().Namespace(corev1.NamespaceNodeLease).Resource("leases").Name(k.r.cfg.NodeName).Body(body).Do(ctx).Into(out)
	})
	if err == nil {
		k.latest = updated
	}
	return err
}

func (k *leaseKeeper) get(ctx context.Context, out *coordinationv1.Lease) error {
	return k.r.parts.Coordination.Get().MaxRetries(0).Namespace(corev1.NamespaceNodeLease).Resource("leases").Name(k.r.cfg.NodeName).Do(ctx).Into(out)
}

// do makes one request with its time limit.
func (k *leaseKeeper) do(ctx context.Context, request func(context.Context, *coordinationv1.Lease) error) (*coordinationv1.Lease, error) {
	ctx, cancel := k.r.within(ctx)
	defer cancel()
	out := &coordinationv1.Lease{}
	if err := request(ctx, out); err != nil {
		return nil, explain("lease of node "+k.r.cfg.NodeName, err)
	}
	return out, nil
}

// signed is a lease that says that the node is alive at now: base, or a new one.
// The Node owns it, so that it goes with it.
func signed(base *coordinationv1.Lease, cfg Config, owner types.UID, now time.Time) *coordinationv1.Lease {
	lease := base.DeepCopy()
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: cfg.NodeName, Namespace: corev1.NamespaceNodeLease}}
	}
	if lease.Spec.HolderIdentity == nil {
		lease.Spec.HolderIdentity = &cfg.NodeName
	}
	seconds := int32(cfg.LeaseDuration / time.Second)
	lease.Spec.LeaseDurationSeconds = &seconds
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if owner != "" {
		lease.OwnerReferences = owned(lease.OwnerReferences, cfg.NodeName, owner)
	}
	return lease
}

// owned makes the Node the owner, and no earlier Node of its name: with that
// one, the lease would be collected.
func owned(have []metav1.OwnerReference, nodeName string, uid types.UID) []metav1.OwnerReference {
	for i := range have {
		if have[i].Kind == "Node" && have[i].Name == nodeName {
			have[i].UID = uid
			return have
		}
	}
	if len(have) > 0 {
		return have // someone else's doing
	}
	return []metav1.OwnerReference{{APIVersion: corev1.SchemeGroupVersion.Version, Kind: "Node", Name: nodeName, UID: uid}}
}
