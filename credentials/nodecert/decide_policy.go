package nodecert

import (
	"crypto/x509"
	"time"
)

// situation is all that the next step depends on.
type situation struct {
	now time.Time
	// current is the certificate in use; nil: none.
	current *x509.Certificate
	// due is when current is to be replaced; zero: not before it expires.
	due time.Time
	// replace says why current must be replaced whatever it says; "": need not.
	replace string
	// want is what the certificate must say; nil: not known yet.
	want *template
	// request is what was asked for and not yet had; nil: nothing.
	request *request
	// unfinished says that current is in use but not yet written everywhere.
	unfinished bool
	// retryAt is when something may be tried again after a failure.
	retryAt time.Time
}

// request is a signing request and what the API server last said of it.
type request struct {
	asks  *template
	state requestState
}

type requestState int

const (
	statePending  requestState = iota // nobody decided, or not signed yet
	stateIssued                       // there is a certificate
	stateRejected                     // denied, failed, gone, or not what was asked for
)

// verb is the next step.
type verb int

const (
	idle    verb = iota // nothing until wake
	ask                 // make a key and a signing request
	await               // look at the request until it changes
	install             // store the certificate that came and use it
	finish              // write what still has to be written for current
	forget              // drop the request and its key
)

// step is what to do, and why, in words for a log line.
type step struct {
	do   verb
	why  string
	wake time.Time // with idle; zero: only when the situation changes
}

// decide says what to do now. Equal situations give equal steps.
func decide(s situation) step {
	if s.request != nil {
		return withRequest(s)
	}
	why := needed(s)
	switch {
	case why == "" && s.unfinished && s.now.Before(s.retryAt):
		return step{do: idle, wake: s.retryAt}
	case why == "" && s.unfinished:
		return step{do: finish}
	case why == "":
		return step{do: idle, wake: earliest(s.due, s.current.NotAfter)}
	case s.want == nil:
		return step{do: idle, why: why + "; waiting for the node's addresses"}
	case s.now.Before(s.retryAt):
		return step{do: idle, why: why, wake: s.retryAt}
	}
	return step{do: ask, why: why}
}

func withRequest(s situation) step {
	if s.want != nil && !s.want.equal(s.request.asks) {
		return step{do: forget, why: "the node's names or addresses changed"}
	}
	waits := s.now.Before(s.retryAt)
	switch {
	case s.request.state == stateRejected:
		return step{do: forget, why: "the request was not granted"}
	case waits:
		return step{do: idle, wake: s.retryAt}
	case s.request.state == stateIssued:
		return step{do: install}
	}
	return step{do: await}
}

// needed says why another certificate is needed; "": it is not.
func needed(s situation) string {
	switch {
	case s.current == nil:
		return "there is none"
	case !s.now.Before(s.current.NotAfter):
		return "it expired"
	case s.replace != "":
		return s.replace
	case s.want != nil && s.want.missing(s.current) != "":
		return s.want.missing(s.current)
	case !s.due.IsZero() && !s.now.Before(s.due):
		return "most of its life is over"
	}
	return ""
}

// napFor is how long to do nothing when nothing is due before wake (zero:
// never). It is short, because timers do not follow the wall clock, by which
// certificates expire: a machine without a battery starts in 1970, and one that
// was suspended wakes up days later.
func napFor(now, wake time.Time) time.Duration {
	if left := wake.Sub(now); !wake.IsZero() && left < lookAgain {
		return left
	}
	return lookAgain
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// rotateAt is between 70 and 90 % of a certificate's life, by a random number
// from 0 to 1: nodes that were made together do not all come at once.
func rotateAt(leaf *x509.Certificate, random float64) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration(float64(life) * (0.7 + 0.2*random)))
}
