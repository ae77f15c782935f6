package apicache

import (
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// The stock kubelet's numbers for pod certificates.
const (
	// unseenTime is after how long a request that was never seen counts as deleted.
	unseenTime = 10 * time.Minute
	// overdueTime is how long after its time the renewal of a certificate is late.
	overdueTime = 10 * time.Minute
	// certJitter spreads the renewals of certificates that were issued together.
	certJitter = 5 * time.Minute
)

// ruling is what became of a PodCertificateRequest.
type ruling int8

const (
	pending ruling = iota
	issued
	denied  // for good
	failed  // for good
	deleted // ask anew
)

// ruleOn reads a request. nil: the API server does not show it (any more).
func ruleOn(r *certificatesv1.PodCertificateRequest, seenBefore bool, unseenFor time.Duration) (ruling, error) {
	if r == nil {
		if seenBefore || unseenFor > unseenTime {
			return deleted, nil
		}
		return pending, nil
	}
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeDenied:
			return denied, fmt.Errorf("PodCertificateRequest was permanently denied: reason=%q message=%q", c.Reason, c.Message)
		case certificatesv1.PodCertificateRequestConditionTypeFailed:
			return failed, fmt.Errorf("PodCertificateRequest was permanently failed: reason=%q message=%q", c.Reason, c.Message)
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			return issued, nil
		}
	}
	return pending, nil
}

// credential is what a pod is given.
type credential struct {
	key, chain []byte
	renewAt    time.Time // with its jitter
	notAfter   time.Time
}

// credentialOf takes the certificate out of an issued request.
func credentialOf(r *certificatesv1.PodCertificateRequest, key []byte, jitter time.Duration) credential {
	c := credential{key: key, chain: cleanChain(r.Status.CertificateChain)}
	if r.Status.NotAfter != nil {
		c.notAfter = r.Status.NotAfter.Time
	}
	if r.Status.BeginRefreshAt != nil {
		c.renewAt = r.Status.BeginRefreshAt.Add(jitter)
	}
	return c
}

// late says what users should hear of a certificate that is not renewed: the
// stock reasons and messages of events.
func (c credential) late(now time.Time) (overdue, expired bool) {
	if c.renewAt.IsZero() {
		return false, false
	}
	return now.After(c.renewAt.Add(overdueTime)), !c.notAfter.IsZero() && now.After(c.notAfter)
}

// state is the stock metric's word.
func (c credential) state(now time.Time, verdict ruling) string {
	overdue, expired := c.late(now)
	switch {
	case verdict == denied:
		return "denied"
	case verdict == failed:
		return "failed"
	case c.key == nil:
		return "not_yet_issued"
	case expired:
		return "expired"
	case overdue:
		return "overdue_for_refresh"
	}
	return "fresh"
}
