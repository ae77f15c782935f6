package httpcheck

import (
	"crypto/tls"
	"net/http"

	"nodekit.dev/probe"
)

// newTransport goes straight to the pod, whatever proxy the environment names.
func newTransport(dial probe.DialFunc, h2c bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(!h2c)
	protocols.SetHTTP2(true) // over TLS only, where servers choose
	protocols.SetUnencryptedHTTP2(h2c)
	return &http.Transport{
		DialContext:        dial,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // pods sign their certificates themselves
		DisableKeepAlives:  true,
		DisableCompression: true,
		Protocols:          &protocols,
	}
}
