package events

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// sendAll writes events, one after the other, until ctx ends. While the API
// server can not be reached the first one waits, and all others behind it.
func (r *Recorder) sendAll(ctx context.Context) {
	failures := 0
	for {
		s, e, created := r.next()
		if s == nil {
			if !wait(ctx, r.wake, 0) || !r.gather(ctx) {
				return
			}
			continue
		}
		err := r.send(ctx, e, created)
		switch {
		case err == nil:
			failures = 0
			r.sent(s)
		case ctx.Err() != nil:
			r.again(s)
			return
		case retry(err) && time.Since(e.LastTimestamp.Time) < r.cfg.KeepFor:
			failures++
			if failures == 1 {
				r.log.Warn("Unable to write event; trying again", "reason", e.Reason, "err", err)
			}
			r.again(s)
			if !wait(ctx, nil, r.pause(failures)) {
				return
			}
		default:
			r.giveUp(e, err)
		}
		r.account()
	}
}

// flush writes what is left, until something fails.
func (r *Recorder) flush(ctx context.Context) {
	for {
		s, e, created := r.next()
		if s == nil || ctx.Err() != nil || r.send(ctx, e, created) != nil {
			return
		}
		r.sent(s)
	}
}

// wait for a poke, or for d if that is not 0; false when ctx ended.
func wait(ctx context.Context, poke <-chan struct{}, d time.Duration) bool {
	var over <-chan time.Time
	if d > 0 {
		over = time.After(d)
	}
	select {
	case <-ctx.Done():
		return false
	case <-poke:
	case <-over:
	}
	return true
}

// gather lets pass what is more urgent than events; false when ctx ended.
func (r *Recorder) gather(ctx context.Context) bool {
	return r.cfg.Gather == 0 || wait(ctx, nil, r.cfg.Gather)
}

func (r *Recorder) pause(failures int) time.Duration {
	d := min(r.cfg.RetryMin<<min(failures-1, 16), r.cfg.RetryMax)
	return d/2 + rand.N(d/2+1) // so that many nodes do not come back at once
}

// next takes the first series from the queue, as it is now.
func (r *Recorder) next() (*series, corev1.Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil, corev1.Event{}, false
	}
	s := r.queue[0]
	r.queue[0] = nil
	r.queue = r.queue[1:]
	s.queued = false
	return s, s.event, s.created
}

func (r *Recorder) sent(s *series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.created = true
}

// again puts a series back to the front, unless it was queued anew meanwhile.
func (r *Recorder) again(s *series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.queued {
		s.queued = true
		r.queue = append([]*series{s}, r.queue...)
	}
}

func (r *Recorder) giveUp(e corev1.Event, err error) {
	why := "refused"
	if retry(err) {
		why = "old"
	}
	r.cfg.Observer.Dropped(why)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsAlreadyExists(err) {
		r.log.Debug("the API server refused an event", "reason", e.Reason, "err", err)
		return
	}
	r.log.Warn("Unable to write event; it is given up", "namespace", e.Namespace, "object", e.InvolvedObject.Name, "reason", e.Reason, "err", err)
}

// account logs what was lost for want of room, when there is room again.
func (r *Recorder) account() {
	r.mu.Lock()
	n := 0
	if len(r.queue) == 0 {
		n, r.lost = r.lost, 0
	}
	r.mu.Unlock()
	if n > 0 {
		r.log.Warn("events were lost while the API server was away", "count", n)
	}
}

// send creates the event, or counts on the one that is there; one that has
// expired meanwhile is created again.
func (r *Recorder) send(ctx context.Context, e corev1.Event, created bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	defer func() { r.cfg.Observer.Sent(err) }()
	if created {
		patch, err := json.Marshal(patchOf(e))
		if err != nil {
			return err
		}
		err = r.core.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(patch).Do(ctx).Error()
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return r.core.Post().Namespace(e.Namespace).Resource("events").Body(&e).Do(ctx).Error()
}

// retry says whether the same request may work later: the API server was not
// reached, is overloaded, or does not know this node's credentials yet.
func retry(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == http.StatusUnauthorized || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError || code == 0
}
