package httpcheck

import (
	"errors"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/podhttp"
	"nodekit.dev/probe"
)

// Target is what to ask.
type Target struct {
	// URL has the scheme http or https.
	URL *url.URL
	// Headers are sent, with all values of one name. A Host replaces the URL's.
	// An empty User-Agent or Accept keeps the default from being sent.
	Headers []corev1.HTTPHeader
	// H2C speaks HTTP/2 from the first byte, also without TLS.
	H2C bool
}

// TargetOf is what a pod's httpGet handler asks for. With h2c its protocol is
// followed (HTTPGetAction.protocol, gate H2CContainerProbe), else ignored. It
// fails for a handler without httpGet, for a pod without an IP, for a port that
// is none and for an unknown scheme.
func TargetOf(t probe.Target, h2c bool) (Target, error) {
	get := t.Handler.HTTPGet
	if get == nil {
		return Target{}, errors.New("the handler has no httpGet")
	}
	address, err := t.Address(get.Host, get.Port)
	if err != nil {
		return Target{}, err
	}
	at, err := podhttp.URL(get, address)
	if err != nil {
		return Target{}, err
	}
	return Target{
		URL:     at,
		Headers: get.HTTPHeaders,
		H2C:     h2c && get.Protocol != nil && *get.Protocol == corev1.HTTPProtocolHTTP2,
	}, nil
}
