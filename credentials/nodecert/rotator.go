package nodecert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"nodekit.dev/internal/backoff"
)

// rotator keeps one certificate that is had by signing requests. All but kick and
// hasten belongs to the goroutine of run.
type rotator struct {
	kind    Kind
	held    *held
	store   store
	observe Observer
	log     *slog.Logger
	// initial is a certificate from elsewhere, for when the store has none;
	// why says why it must be replaced, if it must.
	initial func(now time.Time) (pair *tls.Certificate, why string)
	want    func() *template
	// connect opens a session with what credentials there are.
	connect func(ctx context.Context, current *tls.Certificate) (*session, error)
	// replace says why the certificate in use will not do; "": it does.
	replace func() string
	// used is called after a certificate from a request was put in use; finish
	// after that, until it succeeds.
	used   func()
	finish func() error
	byAge  bool // replace it before it expires
	retry  backoff.Policy
	kick   chan struct{}
	hasten atomic.Bool // with kick: what failed may work now

	current  *tls.Certificate
	borrowed string // why initial must be replaced
	due      time.Time
	flight   *flight
	// unfinished says that finish has to be called for current.
	unfinished bool
	failures   backoff.State
	retryAt    time.Time
	lastWhy    string
	lastErr    string
}

// run returns when ctx ends.
func (r *rotator) run(ctx context.Context) error {
	r.load(time.Now())
	for ctx.Err() == nil {
		if r.hasten.Swap(false) {
			r.retryAt = time.Time{}
			r.reload(time.Now())
		}
		step := decide(r.situation(time.Now()))
		r.say(step)
		switch step.do {
		case idle:
			r.sleep(ctx, step.wake)
		case ask:
			r.settle(ctx, r.ask(ctx))
		case await:
			r.settle(ctx, r.await(ctx))
		case install:
			r.settle(ctx, r.install(time.Now()))
		case finish:
			r.settle(ctx, r.finished())
		case forget:
			r.settle(ctx, r.forget())
		}
	}
	return ctx.Err()
}

// wakeUp makes run look again; it never blocks.
func (r *rotator) wakeUp() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// tryAgain is wakeUp for when there is no reason to wait after a failure.
func (r *rotator) tryAgain() {
	r.hasten.Store(true)
	r.wakeUp()
}

func (r *rotator) situation(now time.Time) situation {
	s := situation{now: now, want: r.want(), due: r.due, retryAt: r.retryAt, unfinished: r.unfinished, replace: r.borrowed}
	if r.current != nil {
		s.current = r.current.Leaf
	}
	if s.replace == "" {
		s.replace = r.replace()
	}
	if r.flight != nil {
		s.request = &r.flight.request
	}
	return s
}

func (r *rotator) load(now time.Time) {
	pair := r.store.load(now)
	if pair == nil || !now.Before(pair.Leaf.NotAfter) {
		other, why := r.initial(now)
		if other != nil && (pair == nil || now.Before(other.Leaf.NotAfter)) {
			pair, r.borrowed = other, why
		}
	}
	if pair != nil {
		r.use(pair)
	}
}

// reload takes a certificate over that somebody put into the place of the one
// in use, as errors about that one say. Files that are damaged may be half
// written: nothing is done about them here.
func (r *rotator) reload(now time.Time) {
	good := func(pair *tls.Certificate) bool { return pair != nil && now.Before(pair.Leaf.NotAfter) }
	pair, err := loadPair(r.store.current(), r.store.current())
	why := ""
	if err != nil || !good(pair) {
		pair, why = r.initial(now)
	}
	if !good(pair) || r.current != nil && pair.Leaf.Equal(r.current.Leaf) {
		return
	}
	r.borrowed = why
	r.use(pair)
	r.used()
}

func (r *rotator) use(pair *tls.Certificate) {
	r.current, r.due = pair, time.Time{}
	if r.byAge {
		r.due = rotateAt(pair.Leaf, rand.Float64())
	}
	r.held.set(pair)
	r.log.Info("certificate loaded", "kind", r.kind, "expires", pair.Leaf.NotAfter, "rotates", r.due)
}

func (r *rotator) ask(ctx context.Context) error {
	want := r.want()
	k, err := keptKey(r.store.keyPath())
	if err != nil {
		return err
	}
	session, err := r.connect(ctx, r.current)
	if err != nil {
		return err
	}
	defer session.close()
	csr, err := session.create(ctx, k, want)
	if err != nil {
		return err
	}
	r.flight = &flight{request: request{asks: want}, key: k, name: csr.Name, uid: csr.UID}
	if !sameRequest(csr, k, want) {
		r.flight.state = stateRejected
		return fmt.Errorf("signing request %s: somebody else made it", csr.Name)
	}
	r.log.Info("asked for a certificate", "kind", r.kind, "request", csr.Name, "signer", want.signer, "as", session.who)
	return nil
}

func (r *rotator) await(ctx context.Context) error {
	r.held.explain("the signing request " + r.flight.name + " waits for approval: kubectl certificate approve " + r.flight.name)
	session, err := r.connect(ctx, r.current)
	if err != nil {
		return err
	}
	defer session.close()
	v, err := session.await(ctx, r.flight, r.kick)
	if err != nil {
		return err
	}
	r.flight.state, r.flight.pair = v.state, v.pair
	if v.state == stateRejected {
		return fmt.Errorf("signing request %s: %s", r.flight.name, v.why)
	}
	return nil
}

func (r *rotator) install(now time.Time) error {
	pair := r.flight.pair
	if err := r.store.save(pair, r.flight.key.pem, now); err != nil {
		return err // tried again: the certificate is still at hand
	}
	var before *x509.Certificate
	if r.current != nil {
		before = r.current.Leaf
	}
	r.flight, r.borrowed = nil, ""
	r.failures, r.retryAt = backoff.State{}, time.Time{}
	r.use(pair)
	if before != nil && r.observe.Rotated != nil {
		r.observe.Rotated(r.kind, pair.Leaf, now.Sub(before.NotBefore))
	}
	if err := dropKey(r.store.keyPath()); err != nil {
		r.log.Warn("a key that is stored with its certificate could not be removed", "err", err)
	}
	r.used()
	r.unfinished = true
	return nil
}

func (r *rotator) finished() error {
	err := r.finish()
	r.unfinished = err != nil
	return err
}

// forget makes the next request one with another key: the name of a request
// comes from its key.
func (r *rotator) forget() error {
	r.flight = nil
	return dropKey(r.store.keyPath())
}

// settle notes how a step went.
func (r *rotator) settle(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	now := time.Now()
	r.failures = r.failures.Fail(r.retry, now, err.Error())
	r.retryAt = now.Add(time.Duration(float64(r.failures.Delay) * (1 + 0.2*rand.Float64())))
	r.held.explain(err.Error())
	if r.observe.RenewFailed != nil {
		r.observe.RenewFailed(r.kind, err)
	}
	level := slog.LevelWarn
	if err.Error() == r.lastErr {
		level = slog.LevelDebug // said before
	}
	r.lastErr = err.Error()
	r.log.Log(ctx, level, "certificate work failed; trying again", "kind", r.kind, "err", err, "after", r.retryAt.Sub(now))
}

// say logs why a certificate is needed, once.
func (r *rotator) say(s step) {
	if s.why != "" && s.why != r.lastWhy {
		r.log.Info("a certificate is needed", "kind", r.kind, "because", s.why)
		if s.do == ask {
			r.held.explain("another one is being asked for")
		} else {
			r.held.explain(s.why)
		}
	}
	r.lastWhy = s.why
}

// sleep returns at wake at the latest, when the situation may have changed, or
// when ctx ends.
func (r *rotator) sleep(ctx context.Context, wake time.Time) {
	timer := time.NewTimer(napFor(time.Now(), wake))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-r.kick:
	}
}
