package httpcheck

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"nodekit.dev/probe"
)

func site(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ok":
		_, _ = w.Write([]byte(r.Host + " " + r.UserAgent() + " " + r.Header.Get("Accept")))
	case "/down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/same":
		http.Redirect(w, r, "/ok", http.StatusFound)
	case "/away":
		w.Header().Set("Location", "http://192.0.2.1/")
		w.WriteHeader(http.StatusFound)
		_, _ = w.Write([]byte("bye"))
	case "/loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
	case "/endless":
		for _, err := w.Write(make([]byte, 1<<16)); err == nil; {
			_, err = w.Write(make([]byte, 1<<16))
		}
	case "/silent":
		<-r.Context().Done()
	}
}

func TestCheck(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(site))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(site))
	defer secure.Close()
	for _, server := range []*httptest.Server{plain, secure} {
		for path, want := range map[string]probe.Outcome{
			"/ok":   {Result: probe.Success, Output: "site.test kube-probe/1.37 */*"},
			"/same": {Result: probe.Success},
			"/down": {Result: probe.Failure, Output: "HTTP probe failed with statuscode: 503"},
			"/away": {Result: probe.Warning, Output: "Probe terminated redirects, Response body: bye"},
			"/loop": {Result: probe.Failure, Output: `Get "/loop": stopped after 10 redirects`},
		} {
			at, err := url.Parse(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			header := Header(http.Header{"Host": {"site.test"}}, "kube-probe/1.37")
			got := Check(t.Context(), Target{URL: at, Header: header})
			if got.Result != want.Result || (want.Output != "" && got.Output != want.Output) {
				t.Errorf("%s: got %+v, want %+v", at, got, want)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(site))
	defer server.Close()
	at, err := url.Parse(server.URL + "/endless")
	if err != nil {
		t.Fatal(err)
	}
	if got := Check(t.Context(), Target{URL: at}); got.Result != probe.Success || len(got.Output) != bodyLimit {
		t.Errorf("endless body: %v, %d bytes", got.Result, len(got.Output))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	at.Path = "/silent"
	got := Check(ctx, Target{URL: at})
	if got.Result != probe.Failure || !strings.HasSuffix(got.Output, `/silent": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`) {
		t.Errorf("silent server: %+v", got)
	}
}

func TestHeader(t *testing.T) {
	got := Header(http.Header{"Accept": {""}, "User-Agent": {""}}, "x")
	if _, ok := got["Accept"]; ok || got.Get("User-Agent") != "" {
		t.Errorf("%v", got)
	}
}
