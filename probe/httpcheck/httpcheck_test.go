package httpcheck

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/probe"
)

// serve starts a server; edit may change it before it listens.
func serve(t *testing.T, handler http.HandlerFunc, edit func(*httptest.Server), start func(*httptest.Server)) *url.URL {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if edit != nil {
		edit(server)
	}
	start(server)
	t.Cleanup(server.Close)
	return parse(t, server.URL)
}

func parse(t testing.TB, text string) *url.URL {
	t.Helper()
	at, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func plain(s *httptest.Server)  { s.Start() }
func secure(s *httptest.Server) { s.StartTLS() }

func offerHTTP2(s *httptest.Server) { s.EnableHTTP2 = true }

// onlyH2C serves HTTP/2 without TLS and nothing else.
func onlyH2C(s *httptest.Server) {
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
}

func site(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ok":
		_, _ = io.WriteString(w, r.Host+" "+r.UserAgent()+" "+r.Header.Get("Accept")+" "+r.Proto)
	case "/down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/teapot":
		w.WriteHeader(http.StatusTeapot)
	case "/early":
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "after hints")
	case "/chunked":
		for _, part := range []string{"one ", "two ", "three"} {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	case "/same":
		http.Redirect(w, r, "/ok", http.StatusFound)
	case "/away":
		w.Header().Set("Location", "http://192.0.2.1/")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "bye")
	case "/nowhere":
		w.WriteHeader(http.StatusNotModified)
	case "/loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
	case "/ten", "/ten+", "/ten++", "/ten+++", "/ten++++", "/ten+++++", "/ten++++++", "/ten+++++++", "/ten++++++++":
		http.Redirect(w, r, r.URL.Path+"+", http.StatusFound)
	case "/ten+++++++++":
		_, _ = io.WriteString(w, "nine")
	}
}

func TestCheck(t *testing.T) {
	for name, at := range map[string]*url.URL{
		"HTTP/1.1 plain": serve(t, site, nil, plain),
		"HTTP/1.1 TLS":   serve(t, site, nil, secure),
		"HTTP/2.0 TLS":   serve(t, site, offerHTTP2, secure),
		"HTTP/2.0 plain": serve(t, site, onlyH2C, plain),
	} {
		proto, _, _ := strings.Cut(name, " ")
		for path, want := range map[string]probe.Outcome{
			"/ok":      {Result: probe.Success, Output: "site.test kube-probe/1.37 */* " + proto},
			"/same":    {Result: probe.Success, Output: "site.test kube-probe/1.37 */* " + proto},
			"/early":   {Result: probe.Success, Output: "after hints"},
			"/chunked": {Result: probe.Success, Output: "one two three"},
			"/down":    {Result: probe.Failure, Output: "HTTP probe failed with statuscode: 503"},
			"/teapot":  {Result: probe.Failure, Output: "HTTP probe failed with statuscode: 418"},
			"/away":    {Result: probe.Warning, Output: "Probe terminated redirects, Response body: bye"},
			"/nowhere": {Result: probe.Warning, Output: "Probe terminated redirects, Response body: "},
			"/loop":    {Result: probe.Failure, Output: `Get "/loop": stopped after 10 redirects`},
			"/ten":     {Result: probe.Success, Output: "nine"},
		} {
			target := Target{
				URL:     at.JoinPath(path),
				Headers: []corev1.HTTPHeader{{Name: "host", Value: "site.test"}},
				H2C:     name == "HTTP/2.0 plain",
			}
			if got := New(Config{}).Check(t.Context(), target); got != want {
				t.Errorf("%s: %s: got %+v, want %+v", name, path, got, want)
			}
		}
	}
}
