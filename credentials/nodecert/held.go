package nodecert

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// held is the certificate that connections are given, and why there is none.
// Use newHeld.
type held struct {
	kind  Kind
	pair  atomic.Pointer[tls.Certificate]
	why   atomic.Pointer[string]
	ready chan struct{}
	once  sync.Once
}

func newHeld(kind Kind) *held {
	h := &held{kind: kind, ready: make(chan struct{})}
	h.explain("the agent is starting")
	return h
}

// set puts a certificate in use. An expired one makes nobody ready.
func (h *held) set(pair *tls.Certificate) {
	h.pair.Store(pair)
	if pair != nil && time.Now().Before(pair.Leaf.NotAfter) {
		h.open()
	}
}

// open makes those go on who wait for a certificate.
func (h *held) open() { h.once.Do(func() { close(h.ready) }) }

// explain says why there is no certificate, for those who want it meanwhile.
func (h *held) explain(why string) { h.why.Store(&why) }

func (h *held) get() (*tls.Certificate, error) {
	pair := h.pair.Load()
	switch {
	case pair == nil:
		return nil, errors.New("no " + string(h.kind) + " certificate: " + *h.why.Load())
	case time.Now().After(pair.Leaf.NotAfter):
		return nil, fmt.Errorf("the %s certificate of %s expired at %s: %s", h.kind, pair.Leaf.Subject.CommonName, pair.Leaf.NotAfter.Format(time.RFC3339), *h.why.Load())
	}
	return pair, nil
}
