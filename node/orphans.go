package node

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// scan is what there is on the node, whoever wants it.
type scan struct {
	pods []runtime.Pod
	dirs []string
}

// check is the answer to whether the runtime has a pod of a UID.
type check struct {
	uid string
	pod runtime.Pod
	err error
}

// readRetryMax is the longest wait between tries to read the runtime as a whole.
const readRetryMax = 5 * time.Second

// readRuntime finds the pods that an earlier agent left running. It has to
// work before anything starts: a static pod of a new UID must wait for the old
// one of its name.
func (d *dispatcher) readRuntime(ctx context.Context) error {
	pods, err := retry(ctx, d, "list the runtime's pods", d.parts.Watcher.List)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, pod := range pods {
		if podactor.CheckUID(pod.UID) == nil {
			d.table.enterExisting(foundRecord(pod))
		}
	}
	d.log.Info("read the runtime", "pods", len(pods))
	return nil
}

// foundRecord is a pod that nobody has named yet.
func foundRecord(pod runtime.Pod) *record {
	from := sourceOf(pod)
	return &record{
		uid: pod.UID, namespace: pod.Namespace, name: pod.Name, foundFrom: from,
		locks: locksOf(pod.UID, pod.Namespace, pod.Name, from != apiSource && from != ""),
		want: lifecycle.Want{
			UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name,
			Stop: &lifecycle.Stop{Reason: lifecycle.StopOrphaned, Grace: orphanGrace(pod)},
		},
	}
}

// sourceOf is the source that named the pod when it started, where it says so.
func sourceOf(pod runtime.Pod) string {
	sandbox, _ := pod.NewestSandbox()
	return sandbox.Annotations[runtime.AnnotationConfigSource]
}

// startScan looks for what nobody wants, unless it is too early or being done.
func (d *dispatcher) startScan() {
	if !d.isReady || d.scanning {
		return
	}
	d.scanning = true
	d.inputs.Go("scan", func(ctx context.Context) error {
		result, err := retry(ctx, d, "look for orphans", d.scan)
		if err != nil {
			return err
		}
		select {
		case d.scans <- result:
		case <-ctx.Done():
		}
		return nil
	})
}

func (d *dispatcher) scan(ctx context.Context) (result scan, err error) {
	if d.parts.PodDirs != nil { // before the runtime: a directory comes before a sandbox
		if result.dirs, err = d.parts.PodDirs.ListPodDirs(ctx); err != nil {
			return result, fmt.Errorf("pod directories: %w", err)
		}
	}
	result.pods, err = d.parts.Watcher.List(ctx)
	return result, err
}

// mayGo says that nobody can come to want what nobody names now: every source
// that may have made it names all that it wants. Who made what tells no source,
// such as a directory, nobody knows.
func (d *dispatcher) mayGo(foundFrom string) bool {
	if foundFrom == "" {
		return len(d.unclear) == 0
	}
	return !d.unclear[foundFrom]
}

// scanned gives everything that nobody wants an actor that takes it away.
func (d *dispatcher) scanned(result scan) {
	d.scanning = false
	for _, pod := range result.pods {
		d.orphan(pod)
	}
	for _, uid := range result.dirs {
		d.orphan(runtime.Pod{UID: uid})
	}
	for _, rec := range d.unclaimed() { // gone from the runtime, perhaps not from disk
		d.beginOrphan(rec)
	}
}

// unclaimed are the pods that were found at the start and that no source named.
func (d *dispatcher) unclaimed() []*record {
	d.mu.Lock()
	defer d.mu.Unlock()
	var recs []*record
	for rec := range d.table.all {
		if rec.actor == nil && rec.source == "" && d.mayGo(rec.foundFrom) {
			recs = append(recs, rec)
		}
	}
	return recs
}

// orphan takes away a pod that exists and that nobody wants.
func (d *dispatcher) orphan(pod runtime.Pod) {
	if podactor.CheckUID(pod.UID) != nil {
		return
	}
	d.mu.Lock()
	rec := d.table.byUID[pod.UID]
	if rec == nil {
		rec = foundRecord(pod)
		d.table.enterExisting(rec)
	}
	begun := rec.actor != nil
	d.mu.Unlock()
	if !begun && d.mayGo(rec.foundFrom) {
		d.beginOrphan(rec)
	}
}

func (d *dispatcher) beginOrphan(rec *record) {
	stop := *rec.want.Stop
	stop.At = time.Now()
	if stop.Grace == 0 {
		stop.Grace = d.rules.OrphanGrace
	}
	rec.want.Stop, rec.want.Rules, rec.leaving = &stop, d.rules, true
	d.log.Info("taking away a pod that nobody wants", "pod", rec.namespace+"/"+rec.name, "uid", rec.uid)
	d.begin(rec)
}

// startCheck asks the runtime about a UID that the node does not know.
func (d *dispatcher) startCheck(uid string) {
	if !d.isReady || d.checking[uid] {
		return
	}
	d.checking[uid] = true
	d.inputs.Go("check", func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, d.cfg.LookTimeout)
		defer cancel()
		result := check{uid: uid}
		result.err = tasks.Contain("look", func() error {
			res, err := d.parts.Watcher.Look(limited, podactor.LookRequest{UID: uid})
			result.pod = res.Pod
			return err
		})
		select {
		case d.checks <- result:
		case <-ctx.Done():
		}
		return nil
	})
}

func (d *dispatcher) checked(result check) {
	delete(d.checking, result.uid)
	switch {
	case result.err != nil: // the next full look of the watcher brings it again
		d.log.Warn("cannot see a pod that nobody named", "uid", result.uid, "err", result.err)
	case !result.pod.Empty():
		d.orphan(result.pod)
	}
}

// orphanGrace is the longest grace that the containers' annotations tell; 0:
// they do not.
func orphanGrace(pod runtime.Pod) time.Duration {
	var grace time.Duration
	for _, c := range pod.Containers {
		for _, key := range []string{runtime.AnnotationPodDeletionGracePeriod, runtime.AnnotationPodTerminationGracePeriod} {
			seconds, err := strconv.ParseInt(c.Annotations[key], 10, 64)
			if err == nil && seconds >= 0 {
				grace = max(grace, lifecycle.Seconds(seconds))
				break // the deletion's own grace outranks the spec's
			}
		}
	}
	return grace
}

// retry calls fn until it works or ctx ends.
func retry[T any](ctx context.Context, d *dispatcher, what string, fn func(context.Context) (T, error)) (T, error) {
	// No pod starts before these calls work, and they cost little: a runtime
	// that comes up late on a cold boot is to be seen within seconds.
	for wait := d.cfg.RetryBase; ; wait = min(2*wait, d.cfg.RetryMax, readRetryMax) {
		var result T
		err := tasks.Contain(what, func() (err error) {
			limited, cancel := context.WithTimeout(ctx, d.cfg.LookTimeout)
			defer cancel()
			result, err = fn(limited)
			return err
		})
		if err == nil {
			return result, nil
		}
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		d.log.Warn("failed; trying again", "what", what, "retryIn", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
}
