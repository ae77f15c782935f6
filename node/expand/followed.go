package expand

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/volume"
)

// followed is one volume that is mounted here, for one pod or several.
type followed struct {
	*Expander
	poke  chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	uses  []volume.Recorded
	grows bool // by what was asked last

	// What follows is only for the goroutine of run.
	failures    backoff.State
	failedFinal bool   // some try failed for sure
	refused     int64  // the size that can not be had while the volume is in use
	complained  string // what users were told last
	version     string // of the claim, as read or written last
}

// errPatience says that nothing changed since a failure whose time is not up.
var errPatience = errors.New("nothing changed since the last try")

// retry is how failures slow down, as with the stock kubelet.
func retry() backoff.Policy {
	return backoff.Policy{Base: 500 * time.Millisecond, Max: 2*time.Minute + 2*time.Second}
}

func newFollowed(e *Expander, uses []volume.Recorded) *followed {
	return &followed{Expander: e, uses: uses, poke: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (f *followed) stop() { close(f.ended) }

// look has the claim read now.
func (f *followed) look() {
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

func (f *followed) use(uses []volume.Recorded) {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := slices.EqualFunc(f.uses, uses, func(a, b volume.Recorded) bool { return a.UID == b.UID && a.Volume.Name == b.Volume.Name })
	grows := f.parts.Grower.Grows(uses[0])
	if !same || grows != f.grows {
		f.look()
	}
	f.uses, f.grows = uses, grows
}

// current is the use by which the volume is grown: one that may write, if there
// is any.
func (f *followed) current() volume.Recorded {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.IndexFunc(f.uses, func(r volume.Recorded) bool { return !r.ReadOnly }); i >= 0 {
		return f.uses[i]
	}
	return f.uses[0]
}

// run looks at the claim whenever there is a reason.
func (f *followed) run(ctx context.Context) {
	group := tasks.New(ctx)
	f.lookAgain(group)
	group.Stop()
	_ = group.Wait() // watch has no error to tell
}

func (f *followed) lookAgain(group *tasks.Group) {
	ctx := group.Context()
	for watching := false; ; {
		timer := time.NewTimer(f.wait(ctx, f.see(ctx)))
		if !watching && f.parts.Grower.Grows(f.current()) {
			watching = true
			group.Go("claim-watch", func(ctx context.Context) error {
				f.watch(ctx)
				return nil
			})
		}
		select {
		case <-timer.C:
		case <-f.poke:
		case <-f.ended:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// wait is how long to leave the claim alone.
func (f *followed) wait(ctx context.Context, err error) time.Duration {
	interval := f.cfg.Interval + time.Duration((rand.Float64()-0.5)*0.2*float64(f.cfg.Interval))
	switch {
	case err == nil:
		f.failures = backoff.State{}
		return interval
	case errors.Is(err, errPatience):
		return f.failures.Wait(time.Now())
	case ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return interval // the claim is gone, or no pod of this node has it any more
	}
	f.failures = f.failures.Fail(retry(), time.Now(), err.Error())
	if f.failures.Failures == 1 {
		pv := f.current().PersistentVolume.Name
		f.parts.Log.WarnContext(ctx, "a volume was not grown", "volume", pv, "retryIn", f.failures.Delay, "err", err)
	}
	return f.failures.Delay
}

// see looks at the claim once. The error says why to look again soon.
func (f *followed) see(ctx context.Context) error {
	use := f.current()
	growths := f.takeGrown(use.PersistentVolume.Name)
	if len(growths) == 0 && !f.parts.Grower.Grows(use) {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := f.get(ctx, claim, f.parts.Core.Get().Namespace(use.Claim.Namespace).Resource("persistentvolumeclaims").Name(use.Claim.Name)); err != nil {
		return err
	}
	if claim.Spec.VolumeName != use.PersistentVolume.Name {
		return nil // another claim of the same name
	}
	if f.failures.Wait(time.Now()) > 0 && claim.ResourceVersion == f.version && len(growths) == 0 {
		return errPatience // our own last word on it
	}
	defer func() { f.version = claim.ResourceVersion }()
	var errs []error
	for _, g := range growths {
		errs = append(errs, f.answer(ctx, claim, g))
	}
	return errors.Join(append(errs, f.act(ctx, claim, use))...)
}

// act brings volume and claim to where they belong.
func (f *followed) act(ctx context.Context, claim *corev1.PersistentVolumeClaim, use volume.Recorded) error {
	here, err := f.parts.Grower.SizeOf(use)
	if err != nil {
		return fmt.Errorf("how big volume %q is: %w", use.PersistentVolume.Name, err)
	}
	if !mayGrow(claim, here) {
		return nil
	}
	pv := &corev1.PersistentVolume{}
	if err := f.get(ctx, pv, f.parts.Core.Get().Resource("persistentvolumes").Name(use.PersistentVolume.Name)); err != nil {
		return err
	}
	desired := pv.Spec.Capacity.Storage().Value()
	todo := decide(claim, desired, here)
	switch {
	case todo == leave, todo != finish && desired == f.refused:
		return nil
	case todo == finish:
		return f.finished(ctx, claim, desired)
	case use.ReadOnly:
		f.complain(claim, use, "FileSystemResizeFailed", resizeMessage("failed", pv.Name, "requested read-only file system"))
		return nil
	}
	use.PersistentVolume = pv
	return f.grow(ctx, claim, use, desired, todo)
}

// grow calls the driver and tells the claim before and after.
func (f *followed) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim, use volume.Recorded, desired int64, todo plan) error {
	if todo == grow {
		if err := f.inProgress(ctx, claim); err != nil {
			return err
		}
	}
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	size, err := f.parts.Grower.Expand(ctx, use, desired)
	<-f.slots
	if ctx.Err() != nil {
		return ctx.Err()
	}
	g := Growth{Volume: use, Size: cmpSize(size, desired), Took: time.Since(began), Err: err}
	f.cfg.Observer.Grew(g)
	switch told := f.answer(ctx, claim, g); {
	case err != nil || told != nil:
		return errors.Join(told, f.again(err, desired))
	case todo == grow:
		return f.finished(ctx, claim, desired)
	}
	return nil
}

// cmpSize is what the driver said, or what it was asked for.
func cmpSize(size, desired int64) int64 {
	if size == 0 {
		return desired
	}
	return size
}

// again is the error where it is worth another try.
func (f *followed) again(err error, desired int64) error {
	switch kind(err) {
	case InUse:
		f.refused = desired
		return nil
	case Infeasible:
		return nil
	case Final:
		f.failedFinal = true
	case Transient:
	}
	return err
}

func kind(err error) FailureKind {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure.Kind
	}
	return Transient
}
