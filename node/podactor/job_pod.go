package podactor

import (
	"context"
	"fmt"
	"time"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/lifecycle"
)

// admit asks whether the pod may start: first whether the agent acts on all of
// its spec, then the admitters in order, then the allocator.
func (j *job) admit(ctx context.Context) (effect, error) {
	if err := j.parts.Specs.Check(j.pod); err != nil {
		return j.verdict(lifecycle.Admission{
			Verdict: lifecycle.VerdictReject,
			Reason:  reasoned.Reason(err, "UnsupportedField"),
			Message: err.Error(),
		}), nil
	}
	ask := j.parts.Admitters
	if j.parts.Allocator != nil {
		ask = append(ask[:len(ask):len(ask)], j.parts.Allocator)
	}
	for _, admitter := range ask {
		admission, err := admitter.Admit(ctx, AdmitRequest{Pod: j.pod, Static: j.static})
		if err != nil {
			return nil, fmt.Errorf("admission: %w", err)
		}
		if admission.Verdict != lifecycle.VerdictAdmit {
			return j.verdict(admission), nil
		}
	}
	return j.verdict(lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}), nil
}

func (j *job) verdict(admission lifecycle.Admission) effect {
	later := admission.Verdict != lifecycle.VerdictAdmit && admission.Verdict != lifecycle.VerdictReject
	if later { // no verdict at all counts as later, too
		admission.Verdict = lifecycle.VerdictLater
		if admission.RetryAt.IsZero() {
			admission.RetryAt = time.Now().Add(j.cfg.RetryBase)
		}
	}
	return func(r *run) {
		if r.seen.Admission.Verdict != admission.Verdict {
			r.log.Info("admission", "verdict", admission.Verdict, "reason", admission.Reason, "message", admission.Message)
		}
		r.seen.Admission = admission
	}
}

func (j *job) prepare(ctx context.Context) (effect, error) {
	if j.parts.Hooks != nil {
		if err := j.parts.Hooks.Prepare(ctx, j.pod); err != nil {
			return nil, err
		}
	}
	return func(r *run) { r.seen.Prepared = true }, nil
}

func (j *job) stopping(ctx context.Context) (effect, error) {
	err := j.afterStarted(ctx)
	if err != nil {
		return nil, err
	}
	if j.parts.Hooks != nil {
		err = j.parts.Hooks.Stopping(ctx, j.pod)
	}
	return func(r *run) { r.seen.StoppingDone = true }, err
}

// cleanup also gives the pod's resources back: it is the last that happens to
// a pod, whatever was made of it before.
func (j *job) cleanup(ctx context.Context) (effect, error) {
	if err := j.afterStarted(ctx); err != nil {
		return nil, err
	}
	if j.parts.Hooks != nil {
		if err := j.parts.Hooks.Cleanup(ctx, j.pod); err != nil {
			return nil, err
		}
	}
	if err := j.release(ctx); err != nil {
		return nil, err
	}
	return func(r *run) { r.seen.CleanedUp = true }, nil
}

func (j *job) ensureCgroup(ctx context.Context) (effect, error) {
	if j.parts.Cgroups != nil {
		if err := j.parts.Cgroups.Ensure(ctx, j.pod); err != nil {
			return nil, fmt.Errorf("cgroup: %w", err)
		}
	}
	return func(r *run) { r.seen.Cgroup, r.seen.CgroupGone = true, false }, nil
}

// removeCgroup also gives the pod's resources back: nothing of it runs any
// more, so that others may have them before the pod is deleted.
func (j *job) removeCgroup(ctx context.Context) (effect, error) {
	if j.parts.Cgroups != nil {
		if err := j.parts.Cgroups.Remove(ctx, j.uid); err != nil {
			return nil, fmt.Errorf("cgroup: %w", err)
		}
	}
	if err := j.release(ctx); err != nil {
		return nil, err
	}
	return func(r *run) { r.seen.Cgroup, r.seen.CgroupGone = false, true }, nil
}

func (j *job) release(ctx context.Context) error {
	if j.parts.UserNamespaces != nil {
		if err := j.parts.UserNamespaces.Release(ctx, j.uid); err != nil {
			return fmt.Errorf("release: user namespace: %w", err)
		}
	}
	if j.parts.Allocator == nil {
		return nil
	}
	if err := j.parts.Allocator.Release(ctx, j.uid); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

func (j *job) mount(ctx context.Context) (effect, error) {
	_, err := j.parts.Mounter.Mount(ctx, MountRequest{Pod: j.pod, Volume: j.action.Volume})
	if err != nil {
		err = fmt.Errorf("volume %s: %w", j.action.Volume, err)
	}
	return j.mountedNow(ctx, err, true)
}

func (j *job) unmount(ctx context.Context) (effect, error) {
	req := UnmountRequest{UID: j.uid, Volume: j.action.Volume}
	if !j.orphan {
		req.Pod = j.pod
	}
	if req.Volume != "" {
		err := j.parts.Mounter.Unmount(ctx, req)
		if err != nil {
			err = fmt.Errorf("volume %s: %w", req.Volume, err)
		}
		return j.mountedNow(ctx, err, false)
	}
	return j.unmountAll(ctx, req)
}

// unmountAll takes down whatever is mounted, one after the other.
func (j *job) unmountAll(ctx context.Context, req UnmountRequest) (effect, error) {
	gone := map[string]bool{}
	done := func(r *run) {
		for name := range gone {
			delete(r.seen.Mounted, name)
		}
	}
	for name := range j.mounted {
		req.Volume = name
		if err := j.parts.Mounter.Unmount(ctx, req); err != nil {
			return done, fmt.Errorf("volume %s: %w", name, err)
		}
		gone[name] = true
	}
	return done, nil
}

// mountedNow says whether the volume is mounted. After a failure the host is
// asked: the call may have got half of the way.
func (j *job) mountedNow(ctx context.Context, err error, mounted bool) (effect, error) {
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.cfg.LookTimeout)
		defer cancel()
		names, lerr := j.parts.Mounter.Mounted(ctx, j.uid)
		if lerr != nil {
			j.log.Warn("cannot see what is mounted", "volume", j.action.Volume, "err", lerr)
			mounted = true // then it has to be unmounted, which is harmless where it is not
		} else {
			mounted = setOf(names)[j.action.Volume]
		}
	}
	return func(r *run) {
		if r.seen.Mounted == nil {
			r.seen.Mounted = map[string]bool{}
		}
		if mounted {
			r.seen.Mounted[j.action.Volume] = true
		} else {
			delete(r.seen.Mounted, j.action.Volume)
		}
	}, err
}

func (j *job) removePodDir(ctx context.Context) (effect, error) {
	if err := j.parts.Mounter.RemovePodDir(ctx, j.uid); err != nil {
		return nil, fmt.Errorf("pod directory: %w", err)
	}
	return func(r *run) { r.seen.DirsGone = true }, nil
}
