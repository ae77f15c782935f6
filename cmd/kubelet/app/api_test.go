package app

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"nodekit.dev/node/server"
)

// open is a configuration whose API asks nobody who comes.
const open = "authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n"

// startAPI runs a kubelet with an API on loopback, and returns its address.
func (b *bed) startAPI(t *testing.T, more string, answer http.HandlerFunc) string {
	t.Helper()
	port := freePort(t)
	start(t, append(b.flags(t, "port: "+port+"\naddress: 127.0.0.1\ncontentType: application/json\n"+more),
		"--kubeconfig="+b.serverOf(t, "token", answer), "--cert-dir="+filepath.Join(b.dir, "pki")))
	return net.JoinHostPort("127.0.0.1", port)
}

// awaitServing waits until somebody listens, and has a certificate.
func awaitServing(t *testing.T, address string) {
	t.Helper()
	await(t, "handshake with "+address, func() bool {
		_, err := handshake(t, address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // its own certificate
		return err == nil
	})
}

// ask asks the API with a token; empty: without one.
func ask(t *testing.T, address, path, token string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // its own certificate
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestServedTLS: what is set is what a client meets.
func TestServedTLS(t *testing.T) {
	const chosen, other = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
	for _, row := range []struct {
		name, config string
		client       *tls.Config // what the client offers
		fails        string
		version      uint16
		suite        uint16 // 0: any
	}{
		{"by default 1.2", "", &tls.Config{MaxVersion: tls.VersionTLS12}, "", tls.VersionTLS12, 0},
		{"by default not 1.1", "", &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "protocol version not supported", 0, 0},
		{"by default both suites", "", &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{other}}, "", tls.VersionTLS12, other},
		{"1.3 refuses 1.2", "tlsMinVersion: VersionTLS13\n", &tls.Config{MaxVersion: tls.VersionTLS12}, "protocol version not supported", 0, 0},
		{"1.3 speaks 1.3", "tlsMinVersion: VersionTLS13\n", &tls.Config{}, "", tls.VersionTLS13, 0},
		{"the suite", "tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n", &tls.Config{MaxVersion: tls.VersionTLS12}, "", tls.VersionTLS12, chosen},
		{"another suite", "tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n",
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{other}}, "handshake failure", 0, 0},
	} {
		for _, cas := range []bool{false, true} { // a config for each client is made where they may show certificates
			t.Run(fmt.Sprintf("%s client CAs %v", row.name, cas), func(t *testing.T) {
				b := newBed(t)
				config := open
				if cas {
					config = strings.Replace(open, "{anonymous", "{x509: {clientCAFile: "+filepath.Join(b.dir, "ca.pem")+"}, anonymous", 1)
				}
				address := b.startAPI(t, config+row.config, http.NotFound)
				awaitServing(t, address)
				offer := row.client.Clone()
				offer.InsecureSkipVerify = true // its own certificate
				got, err := handshake(t, address, offer)
				switch {
				case row.fails != "":
					if err == nil || !strings.Contains(err.Error(), row.fails) {
						t.Errorf("%v, want %s", err, row.fails)
					}
				case err != nil:
					t.Error(err)
				case got.Version != row.version || row.suite != 0 && got.CipherSuite != row.suite:
					t.Errorf("%s with %s", tls.VersionName(got.Version), tls.CipherSuiteName(got.CipherSuite))
				}
			})
		}
	}
}

// handshake is what a client and the server agree on.
func handshake(t *testing.T, address string, offer *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	conn, err := (&tls.Dialer{Config: offer}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		t.Fatalf("a %T", conn)
	}
	return secure.ConnectionState(), nil
}

// TestSuitesWithoutHTTP2: suites with which nothing could be served are refused
// before anything starts.
func TestSuitesWithoutHTTP2(t *testing.T) {
	b := newBed(t)
	flags := append(b.flags(t, open+"tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n"),
		"--kubeconfig="+b.serverOf(t, "token", http.NotFound), "--cert-dir="+filepath.Join(b.dir, "pki"))
	if code, _, errs := once(t, flags); code != 1 || !strings.Contains(errs, "add it, or set tlsMinVersion to VersionTLS13") || strings.Contains(errs, "Started kubelet") {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
	logs, _ := start(t, append(b.flags(t, open+"port: "+freePort(t)+"\naddress: 127.0.0.1\ntlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\ntlsMinVersion: VersionTLS13\n"), flags[len(flags)-2:]...))
	await(t, "start", func() bool { return strings.Contains(logs.String(), "Starting to listen") })
}

// TestEnableServer: without it nobody listens and no route is served; what else
// the kubelet does it does.
func TestEnableServer(t *testing.T) {
	for value, served := range map[string]bool{"true": true, "false": false} {
		t.Run(value, func(t *testing.T) {
			b := newBed(t)
			b.manifest(t)
			address := b.startAPI(t, open+"enableServer: "+value+"\n", http.NotFound)
			b.awaitRunning(t)
			var routes []server.ServedRoute
			b.get(t, "/debug/routes", &routes)
			if served {
				awaitServing(t, address)
				if status, body := ask(t, address, "/healthz", ""); status != http.StatusOK || body != "ok" || len(routes) < 30 {
					t.Errorf("/healthz: %d %q; %d routes", status, body, len(routes))
				}
				return
			}
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err == nil {
				conn.Close()
			}
			if !errors.Is(err, syscall.ECONNREFUSED) || len(routes) > 0 {
				t.Errorf("%v, want a refusal; %d routes", err, len(routes))
			}
		})
	}
}

// reviews is an API server that knows the token "good" as robot, who may ask
// for nodes/healthz. It notes what it was asked.
type reviews struct {
	mu    sync.Mutex
	asked []string
}

func (s *reviews) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
}

func (s *reviews) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(s.asked)))
}

func (s *reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(review any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review) // the client is gone: nobody to tell
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review) // what is empty is refused
		s.note("token " + review.Spec.Token)
		if review.Spec.Token == "good" {
			review.Status.Authenticated, review.Status.User.Username = true, "robot"
		}
		answer(review)
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review) // what is empty is refused
		if a := review.Spec.ResourceAttributes; a != nil {
			s.note(review.Spec.User + " " + a.Subresource)
			review.Status.Allowed = review.Spec.User == "robot" && a.Subresource == "healthz"
		}
		answer(review)
	default:
		http.NotFound(w, r)
	}
}

// TestWhoIsAsked: authentication.webhook.enabled has tokens reviewed, and
// authorization.mode Webhook what their users may do.
func TestWhoIsAsked(t *testing.T) {
	const unauthorized, forbidden = http.StatusUnauthorized, http.StatusForbidden
	for _, row := range []struct {
		anonymous, webhook, mode         string
		good, bad, nobody, goodElsewhere int // what /healthz answers, and /pods to who has the good token
		asked                            string
	}{
		{"false", "true", "Webhook", 200, unauthorized, unauthorized, forbidden, "robot healthz, robot pods, robot proxy, token bad, token good"},
		{"true", "true", "Webhook", 200, unauthorized, forbidden, forbidden,
			"robot healthz, robot pods, robot proxy, system:anonymous healthz, system:anonymous proxy, token bad, token good"},
		{"false", "true", "AlwaysAllow", 200, unauthorized, unauthorized, 200, "token bad, token good"},
		{"true", "false", "Webhook", forbidden, forbidden, forbidden, forbidden, "system:anonymous healthz, system:anonymous pods, system:anonymous proxy"},
		{"true", "false", "AlwaysAllow", 200, 200, 200, 200, ""},
	} {
		t.Run("anonymous "+row.anonymous+" webhook "+row.webhook+" "+row.mode, func(t *testing.T) {
			b, api := newBed(t), &reviews{}
			address := b.startAPI(t, "authentication: {anonymous: {enabled: "+row.anonymous+"}, webhook: {enabled: "+row.webhook+"}}\nauthorization: {mode: "+row.mode+"}\n", api.ServeHTTP)
			awaitServing(t, address)
			for _, q := range []struct {
				path, token string
				want        int
			}{{"/healthz", "good", row.good}, {"/healthz", "bad", row.bad}, {"/healthz", "", row.nobody}, {"/pods", "good", row.goodElsewhere}} {
				if got, body := ask(t, address, q.path, q.token); got != q.want {
					t.Errorf("%s with token %q: %d %q, want %d", q.path, q.token, got, body, q.want)
				}
			}
			if got := strings.Join(api.list(), ", "); got != row.asked {
				t.Errorf("the API server was asked %q, want %q", got, row.asked)
			}
		})
	}
}

// TestComponentPages: /flagz and /statusz are there as their gates say.
func TestComponentPages(t *testing.T) {
	for gate, want := range map[string]int{"true": http.StatusOK, "false": http.StatusNotFound} {
		t.Run(gate, func(t *testing.T) {
			b, port := newBed(t), freePort(t)
			start(t, append(b.flags(t, "port: "+port+"\naddress: 127.0.0.1\nauthentication: {anonymous: {enabled: true}, webhook: {enabled: false}}\n"+
				"authorization: {mode: AlwaysAllow}\nfeatureGates: {ComponentFlagz: "+gate+", ComponentStatusz: "+gate+"}\n"),
				"--kubeconfig="+b.server(t, "token", &atomic.Int32{}), "--cert-dir="+filepath.Join(b.dir, "pki")))
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // its own certificate
			}}
			for path, want := range map[string]int{"/healthz": http.StatusOK, "/flagz": want, "/statusz": want} {
				await(t, path+" of the API", func() bool {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+path, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := client.Do(req)
					if err != nil {
						return false
					}
					defer resp.Body.Close()
					if resp.StatusCode != want {
						t.Errorf("%s: %s, want %d", path, resp.Status, want)
					}
					return true
				})
			}
		})
	}
}

// TestNoAPI: what is set for an API that is not served is told of, by its path.
func TestNoAPI(t *testing.T) {
	b := newBed(t)
	logs, stop := start(t, b.flags(t, "readOnlyPort: 10255\ntlsMinVersion: VersionTLS13\nauthentication: {anonymous: {enabled: true}}\nmaxPods: 7\n"))
	await(t, "warning", func() bool { return strings.Contains(logs.String(), "it is not served") })
	stop()
	for line := range strings.Lines(logs.String()) {
		if !strings.Contains(line, "it is not served") {
			continue
		}
		for _, field := range []string{"readOnlyPort", "tlsMinVersion", "authentication.anonymous.enabled"} {
			if !strings.Contains(line, field) {
				t.Errorf("%s is not named: %s", field, line)
			}
		}
		if strings.Contains(line, "maxPods") {
			t.Errorf("maxPods is named: %s", line)
		}
	}
}
