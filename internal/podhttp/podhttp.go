// Package podhttp reads an httpGet (core/v1 HTTPGetAction) of a pod, whoever asks
// it: a probe or a hook.
//
//	at, err := podhttp.URL(get, "10.0.0.7:8080")
//	header := podhttp.Header(get.HTTPHeaders, "kube-probe/1.37")
//	client := &http.Client{CheckRedirect: podhttp.FollowSameHost}
package podhttp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// URL is what is asked for at an address ("host:port"). The scheme is HTTP where
// none is named; an unknown one is an error.
func URL(get *corev1.HTTPGetAction, address string) (*url.URL, error) {
	at := pathOf(get.Path)
	at.Host = address
	switch at.Scheme = strings.ToLower(string(get.Scheme)); at.Scheme {
	case "":
		at.Scheme = "http"
	case "http", "https":
	default:
		return nil, fmt.Errorf("the scheme %q is neither HTTP nor HTTPS", get.Scheme)
	}
	return at, nil
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

// Header adds the defaults for User-Agent and Accept to the user's own. An own
// one that is empty keeps the default from being sent.
func Header(own []corev1.HTTPHeader, userAgent string) http.Header {
	out := http.Header{}
	for _, h := range own {
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

const maxRedirects = 10

// FollowSameHost is http.Client.CheckRedirect for requests to pods. It keeps them
// from sending the agent elsewhere: the redirect itself is then the answer. After
// ten it gives up.
func FollowSameHost(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}
