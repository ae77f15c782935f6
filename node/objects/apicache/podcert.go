package apicache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/objects/follow"
)

// The API server learns of a pod's binding a little after the node does: what it
// forbids meanwhile is asked for again after firstWait and its doubles, and is
// told to nobody before forbiddenPatience is over.
const (
	firstWait         = 50 * time.Millisecond
	forbiddenPatience = 2 * time.Second
)

// podCerts are the certificates of pods: each podCertificate source of a
// projected volume has one, requested when it is first asked for and renewed
// until the pod is released.
type podCerts struct {
	cache    *Cache
	requests *lazy[*follow.Many[*certificatesv1.PodCertificateRequest]] // of this node

	mu    sync.Mutex
	certs map[certID]*podCert
}

// certID names one source of one volume of one pod.
type certID struct {
	uid    types.UID
	volume string
	source int
}

// podCert is one certificate on its way.
type podCert struct {
	id      certID
	pod     *corev1.Pod
	what    *corev1.PodCertificateProjection
	certs   *podCerts
	stop    func()
	stirred chan struct{} // holds one token: a request of the pod changed

	mu      sync.Mutex
	have    credential // key nil: none yet
	verdict ruling
	err     error         // why there is none
	news    chan struct{} // closed with the next have or err
}

// PodCertificate returns the private key and the certificate chain, both PEM,
// for one podCertificate source: that of the index among the sources of the
// pod's projected volume. The first call requests a certificate; until it is
// issued, each waits a while and then is an error. Changes tells when it is
// issued or renewed.
func (c *Cache) PodCertificate(ctx context.Context, pod *corev1.Pod, volume string, source int) (key, chain []byte, err error) {
	if c.clients.Certificates == nil {
		return nil, nil, errors.New("pod certificates need the API group certificates.k8s.io")
	}
	cert, err := c.podCerts.refer(pod, certID{pod.UID, volume, source})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return cert.get(ctx)
}

// refer finds or begins a certificate.
func (p *podCerts) refer(pod *corev1.Pod, id certID) (*podCert, error) {
	what := projectionOf(pod, id)
	if what == nil {
		return nil, fmt.Errorf("source %d of volume %q is no podCertificate", id.source, id.volume)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	cert := p.certs[id]
	if cert == nil {
		cert = &podCert{id: id, pod: pod, what: what, certs: p, stirred: make(chan struct{}, 1), news: make(chan struct{})}
		cert.stop = p.cache.runner.start("objects-podcertificate", cert.run)
		p.certs[id] = cert
	}
	return cert, nil
}

func projectionOf(pod *corev1.Pod, id certID) *corev1.PodCertificateProjection {
	for _, v := range pod.Spec.Volumes {
		if v.Name == id.volume && v.Projected != nil && id.source >= 0 && id.source < len(v.Projected.Sources) {
			return v.Projected.Sources[id.source].PodCertificate
		}
	}
	return nil
}

func (p *podCerts) release(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, cert := range p.certs {
		if id.uid == uid {
			cert.stop()
			delete(p.certs, id)
		}
	}
}

// stir wakes the certificates of the pod that a request is of.
func (p *podCerts) stir(r *certificatesv1.PodCertificateRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, cert := range p.certs {
		if id.uid != r.Spec.PodUID {
			continue
		}
		select {
		case cert.stirred <- struct{}{}:
		default:
		}
	}
}

// PodCertificateState counts the certificates of pods by signer and state, in
// the words of the stock metric: not_yet_issued, fresh, overdue_for_refresh,
// expired, denied, failed.
type PodCertificateState struct {
	Signer, State string
	Count         int
}

// PodCertificateStates is sorted by signer and state.
func (c *Cache) PodCertificateStates() []PodCertificateState {
	now := time.Now()
	counts := map[[2]string]int{}
	c.podCerts.mu.Lock()
	for _, cert := range c.podCerts.certs {
		cert.mu.Lock()
		counts[[2]string{cert.what.SignerName, cert.have.state(now, cert.verdict)}]++
		cert.mu.Unlock()
	}
	c.podCerts.mu.Unlock()
	var list []PodCertificateState
	for _, id := range slices.SortedFunc(maps.Keys(counts), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		list = append(list, PodCertificateState{Signer: id[0], State: id[1], Count: counts[id]})
	}
	return list
}

// errNotIssued is the stock kubelet's text.
var errNotIssued = errors.New("credential bundle is not issued yet")

// get waits for the first certificate, or for the reason why there is none.
func (c *podCert) get(ctx context.Context) (key, chain []byte, err error) {
	for {
		c.mu.Lock()
		have, err, news := c.have, c.err, c.news
		c.mu.Unlock()
		if have.key != nil {
			return have.key, have.chain, nil
		}
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, nil, errNotIssued
		}
	}
}

// run requests certificates, one after the other, until the pod is released or
// a request is refused for good.
func (c *podCert) run(ctx context.Context) {
	var failures, unknown backoff.State
	patience := time.Now().Add(forbiddenPatience)
	for ctx.Err() == nil {
		request, key, err := c.certs.request(ctx, c.pod, c.what)
		if left := time.Until(patience); apierrors.IsForbidden(err) && left > 0 {
			unknown = unknown.Fail(backoff.Policy{Base: firstWait, Max: forbiddenPatience}, time.Now(), "")
			_ = tasks.Pause(ctx, min(unknown.Delay, left))
			continue
		}
		if err != nil {
			failures = failures.Fail(backoff.Policy{Base: time.Second, Max: time.Minute}, time.Now(), err.Error())
			c.refused(ctx, err, failures.Failures == 1)
			_ = tasks.Pause(ctx, failures.Delay/2+rand.N(failures.Delay/2))
			continue
		}
		failures = backoff.State{}
		final, verdict, err := c.await(ctx, request)
		switch verdict {
		case issued:
			c.issue(credentialOf(final, key, rand.N(certJitter)))
			c.untilRenewal(ctx)
		case denied, failed:
			c.end(verdict, err)
			return
		case deleted, pending: // pending: ctx ended
		}
	}
}

// await returns when the request was ruled on or is gone.
func (c *podCert) await(ctx context.Context, request *certificatesv1.PodCertificateRequest) (*certificatesv1.PodCertificateRequest, ruling, error) {
	// The jitter keeps many that were lost together from being asked for together.
	since, seen := time.Now().Add(rand.N(certJitter)), false
	look := time.NewTicker(time.Minute) // for what time alone brings: a lost request, a certificate that expires
	defer look.Stop()
	told := lateness{}
	for {
		now, err := c.certs.requests.get().Get(ctx, request.Namespace, request.Name)
		if err == nil && now.UID != request.UID || err != nil {
			now = nil
		}
		verdict, why := ruleOn(now, seen, time.Since(since))
		if verdict != pending || ctx.Err() != nil {
			return now, verdict, why
		}
		seen = seen || now != nil
		c.tellLate(&told)
		select {
		case <-c.stirred:
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// lateness is what users were told of the certificate that is to be renewed.
type lateness struct{ overdue, expired bool }

// tellLate makes the stock kubelet's events, each once per certificate.
func (c *podCert) tellLate(told *lateness) {
	c.mu.Lock()
	overdue, expired := c.have.late(time.Now())
	c.mu.Unlock()
	if overdue && !told.overdue {
		told.overdue = true
		c.event("CertificateOverdueForRefresh", "PodCertificate refresh overdue")
	}
	if expired && !told.expired {
		told.expired = true
		c.event("CertificateExpired", "PodCertificate expired")
	}
}

func (c *podCert) event(reason, message string) {
	if tell := c.certs.cache.cfg.Event; tell != nil {
		tell(c.pod, reason, message)
	}
}

// issue takes in a certificate and has the pod's volumes refreshed.
func (c *podCert) issue(have credential) {
	c.mu.Lock()
	c.have, c.err = have, nil
	c.wake()
	c.mu.Unlock()
	c.certs.cache.told.Add(c.id.uid)
}

func (c *podCert) untilRenewal(ctx context.Context) {
	c.mu.Lock()
	at := c.have.renewAt
	c.mu.Unlock()
	if at.IsZero() { // it does not say: never
		<-ctx.Done()
		return
	}
	_ = tasks.Pause(ctx, time.Until(at))
}

// refused notes that a request could not be made.
func (c *podCert) refused(ctx context.Context, err error, first bool) {
	c.mu.Lock()
	if c.have.key == nil {
		c.err = err
	}
	c.wake()
	c.mu.Unlock()
	if first && ctx.Err() == nil {
		c.certs.cache.log.WarnContext(ctx, "a pod certificate can not be requested; trying again",
			"pod", c.pod.Namespace+"/"+c.pod.Name, "uid", string(c.id.uid), "volume", c.id.volume, "err", err)
	}
}

// end notes that there will be no certificate any more. What the pod has it
// keeps, in the files that it was given.
func (c *podCert) end(verdict ruling, err error) {
	c.mu.Lock()
	c.verdict, c.err, c.have = verdict, err, credential{}
	c.wake()
	c.mu.Unlock()
	reason := certificatesv1.PodCertificateRequestConditionTypeDenied
	if verdict == failed {
		reason = certificatesv1.PodCertificateRequestConditionTypeFailed
	}
	c.event(reason, err.Error())
	c.certs.cache.told.Add(c.id.uid)
}

// wake lets those go on that wait in get. The lock is held.
func (c *podCert) wake() {
	close(c.news)
	c.news = make(chan struct{})
}
