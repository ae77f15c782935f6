package follow

import (
	"math/rand/v2"
	"time"
)

const (
	// firstWait is for a refusal that may be over in a moment.
	firstWait = 25 * time.Millisecond
	// baseWait is the first wait after any other failure.
	baseWait = 500 * time.Millisecond
	// maxWait bounds all waits: when the API server is back, all is known again
	// within that time.
	maxWait = 15 * time.Second
)

// pace counts the waits between failures in a row.
type pace struct{ last time.Duration }

// next is how long to wait after one more failure, between half and all of a
// time that doubles.
func (p *pace) next(err error) time.Duration {
	base := baseWait
	if mayPass(err) {
		base = firstWait
	}
	p.last = min(max(2*p.last, base), maxWait)
	return p.last/2 + rand.N(p.last/2+1)
}

func (p *pace) reset() { p.last = 0 }
