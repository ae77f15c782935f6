package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/server"
)

// says is an authenticator or authorizer that always says the same.
type says struct {
	name     string
	known    bool
	err      error
	decision server.Decision
	asked    *[]string
}

func (s says) note(what string) {
	if s.asked != nil {
		*s.asked = append(*s.asked, what)
	}
}

func (s says) Authenticate(*http.Request) (server.User, bool, error) {
	s.note(s.name)
	return server.User{Name: s.name}, s.known, s.err
}

func (s says) Authorize(_ context.Context, a server.Attributes) (server.Decision, error) {
	s.note(fmt.Sprintf("%s: %s %v %s %s", s.name, a.User.Name, a.User.Groups, a.Verb, a.Subresource))
	return s.decision, s.err
}

func ordered[T any](name string, v T, after ...string) node.Ordered[T] {
	return node.Ordered[T]{Name: name, Value: v, After: after}
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

// startAPI runs an API until the test ends.
func startAPI(t *testing.T, cfg server.APIConfig, parts server.APIParts) {
	t.Helper()
	api, err := server.NewAPI(cfg, parts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestChains: the order of the groups, and who has the last word.
func TestChains(t *testing.T) {
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	always := []node.Ordered[server.Authorizer]{ordered[server.Authorizer]("yes", says{decision: server.Allow})}
	var asked []string
	for name, row := range map[string]struct {
		anonymous      bool
		authenticators []node.Ordered[server.Authenticator]
		authorizers    []node.Ordered[server.Authorizer]
		path           string
		want           int
		asked          string
	}{
		"anonymous": {anonymous: true, authorizers: []node.Ordered[server.Authorizer]{ordered[server.Authorizer]("yes", says{name: "yes", decision: server.Allow, asked: &asked})},
			want: 200, asked: "yes: system:anonymous [system:unauthenticated] get proxy"},
		"bad credentials are not anonymous": {anonymous: true, want: 401, authorizers: always,
			authenticators: []node.Ordered[server.Authenticator]{ordered[server.Authenticator]("a", says{name: "a", err: errors.New("bad"), asked: &asked})}, asked: "a"},
		"the next may know": {want: 200, authorizers: always, asked: "b a",
			authenticators: []node.Ordered[server.Authenticator]{
				ordered[server.Authenticator]("a", says{name: "a", known: true, asked: &asked}, "b"),
				ordered[server.Authenticator]("b", says{name: "b", err: errors.New("bad"), asked: &asked}),
			}},
		"nobody knows": {want: 401, authorizers: always, authenticators: []node.Ordered[server.Authenticator]{ordered[server.Authenticator]("a", says{})}},
		"no opinion is not yes": {anonymous: true, want: 403, authorizers: []node.Ordered[server.Authorizer]{
			ordered[server.Authorizer]("none", says{decision: server.NoOpinion})}},
		"no is the last word": {anonymous: true, want: 403, asked: "no: system:anonymous [system:unauthenticated] get proxy", authorizers: []node.Ordered[server.Authorizer]{
			ordered[server.Authorizer]("no", says{name: "no", decision: server.Deny, asked: &asked}),
			ordered[server.Authorizer]("yes", says{name: "yes", decision: server.Allow, asked: &asked}, "no")}},
		"no opinion asks the next": {anonymous: true, want: 200, authorizers: []node.Ordered[server.Authorizer]{
			ordered[server.Authorizer]("none", says{decision: server.NoOpinion}), ordered[server.Authorizer]("yes", says{decision: server.Allow}, "none")}},
		"an error is not yes": {anonymous: true, want: 500, authorizers: []node.Ordered[server.Authorizer]{
			ordered[server.Authorizer]("broken", says{decision: server.Allow, err: errors.New("away")})}},
		"its own subresources, in their order": {anonymous: true, want: 403, path: "/own", authorizers: []node.Ordered[server.Authorizer]{
			ordered[server.Authorizer]("none", says{name: "none", decision: server.NoOpinion, asked: &asked})},
			asked: "none: system:anonymous [system:unauthenticated] get rack none: system:anonymous [system:unauthenticated] get proxy"},
		"by its path": {anonymous: true, want: 404, path: "/stats/x", authorizers: []node.Ordered[server.Authorizer]{
			ordered[server.Authorizer]("yes", says{name: "yes", decision: server.Allow, asked: &asked})},
			asked: "yes: system:anonymous [system:unauthenticated] get stats"},
		"a known user is authenticated": {want: 200, authenticators: []node.Ordered[server.Authenticator]{ordered[server.Authenticator]("jane", says{name: "jane", known: true})},
			authorizers: []node.Ordered[server.Authorizer]{ordered[server.Authorizer]("yes", says{name: "yes", decision: server.Allow, asked: &asked})},
			asked:       "yes: jane [system:authenticated] get proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			cfg := server.APIConfig{Address: freeAddress(t), NodeName: "n", Anonymous: row.anonymous, TLS: server.TLSConfig{
				Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert.TLS.Certificates[0], nil },
			}}
			startAPI(t, cfg, server.APIParts{Authenticators: row.authenticators, Authorizers: row.authorizers, Routes: []node.Ordered[server.Route]{
				ordered("hello", server.Route{Pattern: "GET /", Handler: http.HandlerFunc(hello)}),
				ordered("own", server.Route{Pattern: "/own", Handler: http.HandlerFunc(hello), Subresources: []string{"rack", "proxy"}}),
				ordered("stats", server.Route{Pattern: "GET /stats/", Handler: http.NotFoundHandler()}),
			}})
			client := cert.Client()
			defer client.CloseIdleConnections()
			status, body := fetch(t, client, "https://"+cfg.Address+row.path)
			if status != row.want || strings.Join(asked, " ") != row.asked {
				t.Errorf("%d %q, asked %q, want %d, %q", status, body, strings.Join(asked, " "), row.want, row.asked)
			}
		})
	}
}

// fetch tries until somebody listens.
func fetch(t *testing.T, client *http.Client, url string) (status int, text string) {
	t.Helper()
	until(t, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		status, text = resp.StatusCode, string(body)
		return true
	})
	return status, text
}

// until waits for something that tells nobody.
func until(t *testing.T, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("it did not come to pass")
		}
	}
}

// connect tries until somebody listens.
func connect(t *testing.T, address string) (conn net.Conn) {
	t.Helper()
	until(t, func() bool {
		var err error
		conn, err = net.Dial("tcp", address)
		return err == nil
	})
	return conn
}

// TestStopWaitsForStreams: also for those that took their connection over.
func TestStopWaitsForStreams(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	cfg := server.APIConfig{ReadOnlyAddress: freeAddress(t)}
	api, err := server.NewAPI(cfg, server.APIParts{Routes: []node.Ordered[server.Route]{
		ordered("stream", server.Route{Pattern: "/stream", ReadOnly: true, Streaming: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			close(begun)
			<-r.Context().Done()
			close(over)
		})}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	conn := connect(t, cfg.ReadOnlyAddress)
	defer conn.Close()
	fmt.Fprint(conn, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	select {
	case <-over:
	default:
		t.Error("Run returned before the stream ended")
	}
	_, _ = bufio.NewReader(conn).ReadByte()
}

// TestTakenAddress names it, and what listened already stops.
func TestTakenAddress(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	api, err := server.NewAPI(server.APIConfig{ReadOnlyAddress: l.Addr().String()}, server.APIParts{})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Run(t.Context()); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

func TestNewAPIRefuses(t *testing.T) {
	route := ordered("a", server.Route{Pattern: "/a", Handler: http.NotFoundHandler()})
	yes := []node.Ordered[server.Authorizer]{ordered[server.Authorizer]("yes", says{})}
	secure := server.APIConfig{Address: "127.0.0.1:1", NodeName: "n", Anonymous: true, TLS: server.TLSConfig{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil },
	}}
	with := func(change func(*server.APIConfig)) server.APIConfig { c := secure; change(&c); return c }
	for want, row := range map[string]struct {
		cfg   server.APIConfig
		parts server.APIParts
	}{
		`Address "x"`:                         {cfg: server.APIConfig{Address: "x"}},
		`ReadOnlyAddress "y"`:                 {cfg: server.APIConfig{ReadOnlyAddress: "y"}},
		"NodeName: must be set":               {cfg: with(func(c *server.APIConfig) { c.NodeName = "" }), parts: server.APIParts{Authorizers: yes}},
		"no authentication method configured": {cfg: with(func(c *server.APIConfig) { c.Anonymous = false }), parts: server.APIParts{Authorizers: yes}},
		"no authorization mode specified":     {cfg: secure},
		"no serving certificate":              {cfg: with(func(c *server.APIConfig) { c.TLS.Certificate = nil }), parts: server.APIParts{Authorizers: yes}},
		"tlsCipherSuites: HTTP/2 can not be spoken without one of": {cfg: with(func(c *server.APIConfig) {
			c.TLS.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}
		}), parts: server.APIParts{Authorizers: yes}},
		`two members are called "a"`:             {parts: server.APIParts{Routes: []node.Ordered[server.Route]{route, route}}},
		`"a" comes after "b"`:                    {parts: server.APIParts{Routes: []node.Ordered[server.Route]{ordered("a", route.Value, "b")}}},
		"another route has the same pattern":     {parts: server.APIParts{Routes: []node.Ordered[server.Route]{route, ordered("b", route.Value)}}},
		`authorizer group: a member has no name`: {cfg: secure, parts: server.APIParts{Authorizers: []node.Ordered[server.Authorizer]{{}}}},
		`authenticator group: a member has no name`: {cfg: secure, parts: server.APIParts{
			Authorizers: yes, Authenticators: []node.Ordered[server.Authenticator]{{}}}},
	} {
		if _, err := server.NewAPI(row.cfg, row.parts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestServedRoutes: the list is that of the table, with what opens each.
func TestServedRoutes(t *testing.T) {
	hi := http.HandlerFunc(hello)
	api, err := server.NewAPI(server.APIConfig{}, server.APIParts{Routes: []node.Ordered[server.Route]{
		ordered("late", server.Route{Pattern: "POST /pods", Handler: hi, Subresources: []string{"x"}}, "pods"),
		ordered("pods", server.Route{Pattern: "GET /pods", Handler: hi, ReadOnly: true}),
		ordered("own", server.Route{Pattern: "/own/{name}", Handler: hi, Streaming: true}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", api.Routes())
	for _, want := range []string{
		"{Method:GET Path:/pods Subresources:[pods proxy] ReadOnly:true Streaming:false}",
		"{Method:POST Path:/pods Subresources:[x] ReadOnly:false Streaming:false}",
		"{Method: Path:/own/{name} Subresources:[proxy] ReadOnly:false Streaming:true}",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if n := len(api.Routes()); n != 3 {
		t.Errorf("%d routes: %s", n, got)
	}
}

// TestMerge: a vendor's route takes the place of the stock one of its name.
func TestMerge(t *testing.T) {
	stock := []node.Ordered[server.Route]{ordered("a", server.Route{Pattern: "/a"}), ordered("b", server.Route{Pattern: "/b"})}
	got := server.Plain(server.Merge(stock, []node.Ordered[server.Route]{ordered("b", server.Route{Pattern: "/b2"}), ordered("c", server.Route{Pattern: "/c"})}))
	var patterns []string
	for _, r := range got {
		patterns = append(patterns, r.Pattern)
	}
	if strings.Join(patterns, " ") != "/a /b2 /c" || len(stock) != 2 {
		t.Errorf("got %v", patterns)
	}
}

// TestObserver is told in the stock metrics' words, and nobody can make up
// series.
func TestObserver(t *testing.T) {
	var mu sync.Mutex
	var begun, ended []string
	cfg := server.APIConfig{ReadOnlyAddress: freeAddress(t)}
	plain := func(pattern string) node.Ordered[server.Route] {
		return ordered(pattern, server.Route{Pattern: pattern, ReadOnly: true, Handler: http.HandlerFunc(hello)})
	}
	startAPI(t, cfg, server.APIParts{
		Routes: []node.Ordered[server.Route]{plain("/metrics"), plain("/metrics/probes"), plain("/exec/{a}/{b}"), plain("/portForward/{a}"), plain("/debug/pprof/")},
		Observer: server.Observer{
			Begun: func(r server.Request) {
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, strings.Join(r.Labels(), " "))
			},
			Ended: func(r server.Request, took time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				if took > 0 {
					ended = append(ended, strings.Join(r.Labels(), " "))
				}
			},
		},
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	want := []string{}
	for path, labels := range map[string]string{
		"/metrics": "GET metrics readonly false", "/metrics/probes": "GET metrics/probes readonly false", "/exec/x/y": "GET exec readonly true",
		"/portForward/x": "GET portForward readonly false", "/debug/pprof/heap": "GET debug readonly true", "/made/up": "GET other readonly false", "/metrics/made-up": "GET other readonly false",
	} {
		fetch(t, client, "http://"+cfg.ReadOnlyAddress+path)
		want = append(want, labels)
	}
	until(t, func() bool { // a request ends a moment after its answer
		mu.Lock()
		defer mu.Unlock()
		return len(ended) == len(want)
	})
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(ended) // one may end after the next began
	slices.Sort(begun)
	slices.Sort(want)
	if fmt.Sprint(begun) != fmt.Sprint(want) || fmt.Sprint(ended) != fmt.Sprint(want) {
		t.Errorf("begun %v, ended %v, want %v", begun, ended, want)
	}
}

// TestHealthz adds up checks, and tells reasons only to who asks for the check.
func TestHealthz(t *testing.T) {
	var broken error
	routes, err := server.Healthz([]node.Ordered[server.Check]{
		ordered("disk", server.Check{Check: func(*http.Request) error { return broken }}),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.Value.Pattern, r.Value.Handler)
		if !r.Value.ReadOnly {
			t.Errorf("%s is not on the read-only port", r.Name)
		}
	}
	check := func(path, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	check("/healthz", "200 ok")
	check("/healthz?verbose", "200 [+]ping ok\n[+]disk ok\nhealthz check passed\n")
	broken = errors.New("it smokes")
	check("/healthz", "500 [+]ping ok\n[-]disk failed: reason withheld\nhealthz check failed\n")
	check("/healthz/disk", "500 internal server error: it smokes\n")
	check("/healthz/ping", "200 ok")
	check("/healthz?exclude=disk", "200 ok")
	check("/healthz?exclude=disk&exclude=x&verbose", "200 [+]ping ok\n[+]disk excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"x\"\nhealthz check passed\n")
}

// TestResponding: what hangs is told once it has for long enough, not one call
// more hangs for each check, and once it does no more all is well.
func TestResponding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		hang := make(chan struct{})
		check := server.Responding("sync Loop", 5*time.Minute, func() {
			calls++
			<-hang
		})
		ask := func() error { return check.Check(httptest.NewRequest(http.MethodGet, "/", nil)) }
		begun := time.Now()
		if err := ask(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("at first: %v after %v", err, time.Since(begun))
		}
		time.Sleep(5 * time.Minute) // fake time
		for range 3 {
			if err := ask(); err == nil || err.Error() != "sync Loop took longer than expected" {
				t.Errorf("got %v", err)
			}
		}
		synctest.Wait() // orders the call's write before the read
		if calls != 1 {
			t.Errorf("%d calls hang", calls)
		}
		close(hang)
		synctest.Wait()
		for range 2 {
			if err := ask(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestZPages(t *testing.T) {
	status := server.Statusz(server.Status{
		Component: "kubelet", Version: "v1.37.2", GoVersion: "go1.26", Emulation: "1.37", Started: time.Now().Add(-3723 * time.Second), Paths: []string{"/healthz"},
	})
	flags := server.Flagz("kubelet", func() map[string]string { return map[string]string{"v": "2", "address": ""} })
	for _, row := range []struct {
		route  server.Route
		accept string
		code   int
		form   string
		wants  []string
	}{
		{status, "", 200, "text/plain; charset=utf-8", []string{"\nkubelet statusz\nWarning: ", "\nUp: 1 hr 02 min 03 sec\nGo version: go1.26\nBinary version: v1.37.2\nEmulation version: 1.37\nPaths: /healthz\n"}},
		{status, "*/*", 200, "text/plain; charset=utf-8", []string{"statusz"}},
		{status, "text/html, text/*;q=0.5", 200, "text/plain; charset=utf-8", []string{"statusz"}},
		{status, "application/json", 406, "text/plain; charset=utf-8", []string{"v=v1beta1;g=config.k8s.io;as=Statusz"}},
		{status, "application/json;v=v1;g=config.k8s.io;as=Statusz", 406, "text/plain; charset=utf-8", []string{"only the following"}},
		{status, "application/json;v=v1beta1;g=config.k8s.io;as=Flagz", 406, "text/plain; charset=utf-8", nil},
		{status, "application/json;v=v1beta1;g=config.k8s.io;as=Statusz", 200, "application/json",
			[]string{`"kind":"Statusz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kubelet"`, `"uptimeSeconds":3723`, `"paths":["/healthz"]`}},
		{status, "application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz", 200, "application/yaml", []string{"apiVersion: config.k8s.io/v1alpha1\n", "binaryVersion: v1.37.2\n"}},
		{flags, "", 200, "text/plain; charset=utf-8", []string{"\nkubelet flagz\n", "\naddress=\nv=2\n"}},
		{flags, "application/json;v=v1beta1;g=config.k8s.io;as=Flagz", 200, "application/json", []string{`"flags":{"address":"","v":"2"}`}},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if row.accept != "" {
			r.Header.Set("Accept", row.accept)
		}
		w := httptest.NewRecorder()
		row.route.Handler.ServeHTTP(w, r)
		if w.Code != row.code || w.Header().Get("Content-Type") != row.form {
			t.Errorf("%q: %d %v", row.accept, w.Code, w.Header())
		}
		for _, want := range row.wants {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%q: no %q in %s", row.accept, want, w.Body)
			}
		}
		if deprecated := strings.Contains(row.accept, "v1alpha1"); deprecated != (w.Header().Get("Warning") != "") {
			t.Errorf("%q: warning %q", row.accept, w.Header().Get("Warning"))
		}
	}
	w := httptest.NewRecorder()
	server.Configz(func() any { return map[string]int{"kubeletconfig": 1} }).Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if !json.Valid(w.Body.Bytes()) || w.Body.String() != `{"kubeletconfig":1}` {
		t.Errorf("configz: %s", w.Body)
	}
}

func TestTLSNames(t *testing.T) {
	for name, want := range map[string]uint16{"": tls.VersionTLS12, "VersionTLS10": tls.VersionTLS10, "VersionTLS13": tls.VersionTLS13} {
		if got, err := server.TLSVersion(name); got != want || err != nil {
			t.Errorf("%q: %x, %v", name, got, err)
		}
	}
	if _, err := server.TLSVersion("TLS12"); err == nil || err.Error() != `unknown tls version "TLS12": use one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13` {
		t.Error(err)
	}
	ids, insecure, err := server.CipherSuites([]string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"})
	if err != nil || len(ids) != 4 || fmt.Sprint(insecure) != "[TLS_RSA_WITH_RC4_128_SHA]" {
		t.Errorf("%x, %v, %v", ids, insecure, err)
	}
	if _, _, err := server.CipherSuites([]string{"x"}); err == nil || err.Error() != "Cipher suite x not supported or doesn't exist" {
		t.Error(err)
	}
}

// TestCertificateChanges without a restart, and HTTP/2 is spoken.
func TestCertificateChanges(t *testing.T) {
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS()
	defer pair.Close()
	var mu sync.Mutex
	var now *tls.Certificate // none yet, as before the first one was signed
	cfg := server.APIConfig{Address: freeAddress(t), NodeName: "n", Anonymous: true, TLS: server.TLSConfig{
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			mu.Lock()
			defer mu.Unlock()
			if now == nil {
				return nil, errors.New("no serving certificate available for the kubelet")
			}
			return now, nil
		},
		ClientCAs: pair.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs.Clone,
	}}
	startAPI(t, cfg, server.APIParts{
		Authorizers: []node.Ordered[server.Authorizer]{ordered[server.Authorizer]("yes", says{decision: server.Allow})},
		Routes: []node.Ordered[server.Route]{ordered("proto", server.Route{Pattern: "GET /", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Proto)
		})})},
	})
	connect(t, cfg.Address).Close()
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: pair.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+cfg.Address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
		t.Error("it answered without a certificate")
	}
	mu.Lock()
	now = &pair.TLS.Certificates[0]
	mu.Unlock()
	if status, body := fetch(t, client, "https://"+cfg.Address); status != 200 || body != "HTTP/2.0" {
		t.Errorf("%d %q", status, body)
	}
}
