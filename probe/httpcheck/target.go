package httpcheck

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
	at := pathOf(get.Path)
	at.Host = address
	switch scheme := strings.ToLower(string(get.Scheme)); scheme {
	case "", "http":
		at.Scheme = "http"
	case "https":
		at.Scheme = scheme
	default:
		return Target{}, fmt.Errorf("the scheme %q is neither HTTP nor HTTPS", get.Scheme)
	}
	return Target{
		URL:     at,
		Headers: get.HTTPHeaders,
		H2C:     h2c && get.Protocol != nil && *get.Protocol == corev1.HTTPProtocolHTTP2,
	}, nil
}

// pathOf reads a handler's path, with its query. A text that is no URL is a path
// of odd characters, question marks too; so is one that looks like "scheme:rest".
// A host that it may name is not the path's business.
func pathOf(text string) *url.URL {
	at, err := url.Parse(text)
	if err != nil || at.Opaque != "" {
		return &url.URL{Path: text}
	}
	return &url.URL{Path: at.Path, RawPath: at.RawPath, RawQuery: at.RawQuery, ForceQuery: at.ForceQuery}
}

// Header is what is sent: the target's own headers, with the defaults for
// User-Agent and Accept where it has none.
func (t Target) Header(userAgent string) http.Header {
	out := http.Header{}
	for _, h := range t.Headers {
		out.Add(h.Name, h.Value)
	}
	if _, ok := out["User-Agent"]; !ok {
		out.Set("User-Agent", userAgent) // net/http itself leaves an empty one out
	}
	if have, ok := out["Accept"]; !ok {
		out.Set("Accept", "*/*")
	} else if have[0] == "" {
		out.Del("Accept")
	}
	return out
}
