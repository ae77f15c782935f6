package images

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/runtime"
)

// imageKey is what at most one pull at a time is for.
type imageKey struct{ image, handler string }

// flight is one pull that any number of requests wait for. Its results may be
// read once done is closed.
type flight struct {
	key    imageKey
	creds  string // fingerprint of the credentials it pulls with
	ticket *ticket
	stop   func()
	done   chan struct{}

	// waiters is guarded by Puller.mu; at 0 the pull is cancelled and takes
	// nobody in any more.
	waiters int

	ref  string
	size uint64
	took time.Duration
	err  error
}

// place is where a request stands towards a flight.
type place int

const (
	host    place = iota // it began the flight
	guest                // it waits with others
	outside              // other credentials, or everybody left: come again later
)

// join returns the flight of an image: the one under way, or a new one.
func (p *Puller) join(ctx context.Context, req Request, pull runtime.ImagePull, auths []runtime.ImageAuth) (*flight, place) {
	key := imageKey{pull.Spec.Image, pull.Spec.RuntimeHandler}
	creds := fingerprint(auths)
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.flights[key]; f != nil {
		if f.creds != creds || f.waiters == 0 {
			return f, outside
		}
		f.waiters++
		p.queue.older(f.ticket, req.PodCreated)
		return f, guest
	}
	// The pull outlives the request that began it while others wait for it.
	group := tasks.New(context.WithoutCancel(ctx))
	f := &flight{key: key, creds: creds, waiters: 1, stop: group.Stop, done: make(chan struct{})}
	f.ticket = p.queue.ticket(req.PodCreated)
	p.flights[key] = f
	group.Go("pull image "+pull.Spec.Image, func(ctx context.Context) error {
		defer group.Stop()
		defer p.land(f)
		f.err = tasks.Contain("pull image "+pull.Spec.Image, func() error { return p.fly(ctx, f, pull, auths) })
		return nil // the waiters get the error
	})
	return f, host
}

// leave takes one waiter away. The last one ends the pull and waits until it
// did, so that nothing outlives the calls.
func (p *Puller) leave(f *flight) {
	p.mu.Lock()
	f.waiters--
	last := f.waiters == 0
	p.mu.Unlock()
	if last {
		f.stop()
		<-f.done
	}
}

func (p *Puller) land(f *flight) {
	p.mu.Lock()
	delete(p.flights, f.key)
	p.mu.Unlock()
	close(f.done)
}

// fly waits for a slot and pulls.
func (p *Puller) fly(ctx context.Context, f *flight, pull runtime.ImagePull, auths []runtime.ImageAuth) error {
	if err := p.queue.acquire(ctx, f.ticket); err != nil {
		return err
	}
	defer p.queue.release()
	p.cfg.Log.Debug("pulling image", "image", pull.Spec.Image)
	begun := time.Now()
	ref, err := p.pullWithAny(ctx, pull, auths)
	f.took = time.Since(begun)
	if err != nil {
		return err
	}
	f.ref = ref
	// Only a figure for events and metrics: that it is not known is no failure.
	if info, ok, err := p.service.ImageStatus(ctx, pull.Spec); err == nil && ok {
		f.size = info.Size
	}
	p.cfg.Log.Info("pulled image", "image", pull.Spec.Image, "ref", f.ref, "took", f.took, "bytes", f.size)
	return nil
}

// pullWithAny tries the credentials in order.
func (p *Puller) pullWithAny(ctx context.Context, pull runtime.ImagePull, auths []runtime.ImageAuth) (string, error) {
	var errs []error
	for _, auth := range auths {
		pull.Auth = auth
		ref, err := p.service.PullImage(ctx, pull)
		if err == nil {
			return ref, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return "", errs[0]
	}
	return "", utilerrors.NewAggregate(errs)
}

// fingerprint tells sets of credentials apart without keeping them.
func fingerprint(auths []runtime.ImageAuth) string {
	h := sha256.New()
	for _, a := range auths {
		fmt.Fprintf(h, "%q", []string{a.Username, a.Password, a.Auth, a.ServerAddress, a.IdentityToken, a.RegistryToken})
	}
	return string(h.Sum(nil))
}
