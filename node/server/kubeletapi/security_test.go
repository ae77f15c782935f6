package kubeletapi_test

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"nodekit.dev/node/server"
)

// TestEveryRouteIsGuarded walks the whole list of routes, with every method,
// and what is no route: without credentials each answers 401, with wrong ones
// too, and with those of somebody who may not 403.
func TestEveryRouteIsGuarded(t *testing.T) {
	w := newWorld(t)
	// What counts as a client's certificate for another: a name of its own choice
	// signed by somebody else, and one without a name.
	stranger := newAuthority(t, "stranger").issue(t, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	nobody := w.ca.issue(t, pkix.Name{})
	admin, another, unnamed := w.admin(), w.as(&stranger), w.as(&nobody)
	paths := []string{"/", "/nowhere", "//pods", "/pods/", "/exec/../pods", "/exec/default/web/%2e%2e", "/healthz/nowhere", "/PODS", "/runningpods", "/debug/pprof", "/%70ods", "/stats/summary"}
	for _, r := range w.routes {
		_, path := pathOf(r.Value.Pattern)
		paths = append(paths, path, path+"?query=x")
	}
	w.allow(func(authorizationv1.SubjectAccessReviewSpec) bool { return false })
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			for name, row := range map[string]struct {
				client *http.Client
				header http.Header
				want   int
			}{
				"no credentials":            {w.client, nil, http.StatusUnauthorized},
				"another authority":         {another, nil, http.StatusUnauthorized},
				"nobody's certificate":      {unnamed, nil, http.StatusUnauthorized},
				"an unknown token":          {w.client, http.Header{"Authorization": {"Bearer bad"}}, http.StatusUnauthorized},
				"no token":                  {w.client, http.Header{"Authorization": {"Bearer "}}, http.StatusUnauthorized},
				"basic":                     {w.client, http.Header{"Authorization": {"Basic YWRtaW46YWRtaW4="}}, http.StatusUnauthorized},
				"names in headers":          {w.client, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, http.StatusUnauthorized},
				"a user who may not":        {admin, nil, http.StatusForbidden},
				"a token of who may not":    {w.client, http.Header{"Authorization": {"Bearer good"}}, http.StatusForbidden},
				"another user impersonated": {admin, http.Header{"Impersonate-User": {"root"}}, http.StatusForbidden},
			} {
				if got, body := w.do(row.client, method, path, row.header); got != row.want {
					t.Errorf("%s %s with %s: %d %q, want %d", method, path, name, got, body, row.want)
				}
			}
		}
	}
}

// TestEveryRouteAsksForWhatItShould: each opens to who may do what it asks for,
// and to nobody else.
func TestEveryRouteAsksForWhatItShould(t *testing.T) {
	w := newWorld(t)
	admin := w.admin()
	all := []string{"proxy", "pods", "healthz", "configz", "statusz", "stats", "metrics", "log", "checkpoint"}
	want := func(path string) []string {
		for prefix, subs := range map[string][]string{
			"/pods": {"pods", "proxy"}, "/runningpods": {"pods", "proxy"}, "/allocatedPods": {"pods", "proxy"},
			"/healthz": {"healthz", "proxy"}, "/configz": {"configz", "proxy"}, "/flagz": {"configz"}, "/statusz": {"statusz"},
			"/metrics": {"metrics"}, "/logs": {"log"}, "/checkpoint": {"checkpoint"},
		} {
			if strings.HasPrefix(path, prefix) {
				return subs
			}
		}
		return []string{"proxy"}
	}
	verbs := map[string]string{"GET": "get", "POST": "create", "PUT": "update"}
	for _, r := range w.routes {
		method, path := pathOf(r.Value.Pattern)
		if method == "" {
			method = "GET"
		}
		for _, sub := range all {
			w.allow(func(s authorizationv1.SubjectAccessReviewSpec) bool {
				a := s.ResourceAttributes
				return s.User == "admin" && slices.Contains(s.Groups, "admins") && slices.Contains(s.Groups, server.GroupAuthenticated) &&
					a.Resource == "nodes" && a.Name == "node-1" && a.Version == "v1" && a.Group == "" && a.Namespace == "" &&
					a.Verb == verbs[method] && a.Subresource == sub
			})
			got, body := w.do(admin, method, path, nil)
			if opened := got != http.StatusForbidden; opened != slices.Contains(want(path), sub) {
				t.Errorf("%s %s for who may %s nodes/%s: %d %q", method, path, verbs[method], sub, got, body)
			}
		}
	}
}

// TestReadOnlyPort serves its subset to everybody, and nothing else to anybody.
func TestReadOnlyPort(t *testing.T) {
	w := newWorld(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, r := range w.routes {
		method, path := pathOf(r.Value.Pattern)
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.readOnly+path, nil)
		must(t, err)
		resp, err := client.Do(req)
		must(t, err)
		resp.Body.Close()
		open := path == "/pods" || path == "/metrics" || strings.HasPrefix(path, "/healthz")
		if open != (resp.StatusCode == http.StatusOK) || !open && resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s on the read-only port: %d", method, path, resp.StatusCode)
		}
	}
	if w.reviews != 0 {
		t.Errorf("the API server was asked %d times about the read-only port", w.reviews)
	}
}

// TestOldTLSIsRefused: TLS 1.1 is not spoken.
func TestOldTLSIsRefused(t *testing.T) {
	w := newWorld(t)
	old := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: w.ca.pool(), ServerName: "node-1", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.address+"/healthz", nil)
	must(t, err)
	if resp, err := old.Do(req); err == nil {
		resp.Body.Close()
		t.Error("TLS 1.1 was spoken")
	}
}
