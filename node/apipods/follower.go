package apipods

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/node"
)

// follower is the state of one Run: what is known of the API server's pods.
type follower struct {
	*Source
	updates chan<- node.SourceUpdate
	pods    map[types.UID]known
	// version is where the next watch begins; empty: a list comes first.
	version string
	failed  backoff.State
	warned  bool
}

// known is one pod: the API server's copy, and what the node was given of it
// (nil for a mirror pod).
type known struct{ copied, given *corev1.Pod }

// once lists, unless the watch can go on where it was, and watches until the
// server ends the watch (nil) or something fails.
func (f *follower) once(ctx context.Context) error {
	if f.version == "" {
		if err := f.list(ctx); err != nil {
			return fmt.Errorf("list the pods of node %s: %w", f.cfg.NodeName, err)
		}
	}
	if err := f.watch(ctx); err != nil {
		return fmt.Errorf("watch the pods of node %s: %w", f.cfg.NodeName, err)
	}
	return nil
}

func (f *follower) options() *metav1.ListOptions {
	return &metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", f.cfg.NodeName).String()}
}

// list takes in everything as it is now. The answer is never an old one: what
// was deleted before must not come back.
func (f *follower) list(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, f.cfg.ListTimeout)
	defer cancel()
	var list corev1.PodList
	err := f.api.Get().Resource("pods").VersionedParams(f.options(), metav1.ParameterCodec).Do(limited).Into(&list)
	if err != nil {
		return err
	}
	now := time.Now()
	before := f.pods
	f.pods = make(map[types.UID]known, len(list.Items))
	update := node.SourceUpdate{Pods: []*corev1.Pod{}}
	for i := range list.Items {
		pod := list.Items[i] // a copy: one pod must not keep the whole list in memory
		given, _ := f.take(&pod, before[pod.UID], now)
		if given != nil {
			update.Pods = append(update.Pods, given)
		}
	}
	for uid, old := range before {
		if _, still := f.pods[uid]; !still {
			f.copies.PodGone(old.copied)
		}
	}
	f.copies.InSync()
	if err := f.send(ctx, update); err != nil {
		return err
	}
	f.version = list.ResourceVersion
	return nil
}

// watch takes in changes one by one.
func (f *follower) watch(ctx context.Context) error {
	opts := f.options()
	opts.Watch, opts.AllowWatchBookmarks, opts.ResourceVersion = true, true, f.version
	seconds := int64((f.cfg.WatchTime + rand.N(f.cfg.WatchTime)).Seconds())
	opts.TimeoutSeconds = &seconds
	began := time.Now()
	events, err := f.api.Get().Resource("pods").VersionedParams(opts, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return f.watchFailed(err)
	}
	defer events.Stop()
	f.copies.InSync()
	lasts := time.After(shortWatch)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lasts:
			f.works()
		case event, open := <-events.ResultChan():
			if !open {
				if time.Since(began) < shortWatch {
					return errShort
				}
				return nil
			}
			if err := f.event(ctx, event); err != nil {
				return f.watchFailed(err)
			}
		}
	}
}

// A watch that ends sooner than that failed. One alone is nothing to tell: a new
// certificate ends all connections.
const shortWatch = time.Second

var errShort = errors.New("the server ended the watch at once")

// works ends the back-off: the server does what it should.
func (f *follower) works() {
	if f.warned {
		f.log.Info("the API server's pods are watched again", "failures", f.failed.Failures)
	}
	f.failed, f.warned = backoff.State{}, false
}

// failedWith notes a failure and says how long to wait. It warns once while the
// server is away.
func (f *follower) failedWith(ctx context.Context, err error) time.Duration {
	policy := backoff.Policy{Base: f.cfg.RetryBase, Max: f.cfg.RetryMax}
	f.failed = f.failed.Fail(policy, time.Now(), err.Error())
	wait := f.failed.Delay + rand.N(f.failed.Delay/2+1)
	level := slog.LevelDebug
	if !f.warned && (f.failed.Failures > 1 || !errors.Is(err, errShort)) {
		level, f.warned = slog.LevelWarn, true
	}
	f.log.Log(ctx, level, "can not follow the API server's pods; running pods stay, trying again", "retryIn", wait, "err", err)
	return wait
}

// watchFailed notes whether everything is to be listed anew.
func (f *follower) watchFailed(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		f.version = ""
	}
	return err
}

func (f *follower) event(ctx context.Context, event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("a watch event brought %T, not a pod", event.Object)
	}
	update := node.SourceUpdate{Partial: true}
	switch event.Type {
	case watch.Added, watch.Modified:
		given, news := f.take(pod, f.pods[pod.UID], time.Now())
		if news && given != nil {
			update.Pods = []*corev1.Pod{given}
		}
	case watch.Deleted:
		if f.drop(pod) {
			update.Removed = []types.UID{pod.UID}
		}
	case watch.Bookmark, watch.Error:
	}
	f.version = pod.ResourceVersion
	if len(update.Pods)+len(update.Removed) == 0 {
		return nil
	}
	return f.send(ctx, update)
}

// take notes a pod as the API server has it now. It returns what to give to
// the node (nil for a mirror pod), and whether that is news.
func (f *follower) take(pod *corev1.Pod, old known, now time.Time) (given *corev1.Pod, news bool) {
	pod.ManagedFields = nil // nobody here asks, and it is large
	given = old.given
	switch {
	case isMirror(pod):
		given = nil
	case given == nil, newsForNode(old.copied, pod):
		given, news = asGiven(pod, old.given, now), true
	}
	f.pods[pod.UID] = known{copied: pod, given: given}
	f.copies.PodSeen(pod)
	return given, news
}

// drop forgets a pod. It reports whether the node had it.
func (f *follower) drop(pod *corev1.Pod) bool {
	old := f.pods[pod.UID]
	delete(f.pods, pod.UID)
	pod.ManagedFields = nil
	f.copies.PodGone(pod)
	return old.given != nil
}

func (f *follower) send(ctx context.Context, update node.SourceUpdate) error {
	update.Source = Name
	select {
	case f.updates <- update:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
