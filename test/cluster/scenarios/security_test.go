package scenarios

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/cluster/world"
)

// stockRoutes are all that a kubelet serves, with parameters filled in.
func stockRoutes(ns, pod, uid string) []string {
	object := ns + "/" + pod
	var routes []string
	for _, streaming := range []string{"exec", "attach", "run"} {
		routes = append(routes, "/"+streaming+"/"+object+"/main?command=id&input=1&output=1&error=1", "/"+streaming+"/"+object+"/"+uid+"/main?command=id&output=1")
	}
	return append(routes,
		"/portForward/"+object+"?port=80", "/portForward/"+object+"/"+uid+"?port=80",
		"/containerLogs/"+object+"/main", "/checkpoint/"+object+"/main",
		"/", "/pods", "/pods/", "/runningpods/", "/healthz", "/healthz/ping", "/healthz/syncloop", "/healthz/log",
		"/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource", "/metrics/slis",
		"/stats/summary", "/stats/", "/logs/", "/logs/syslog", "/logs?query=kubelet", "/configz", "/statusz", "/flagz",
		"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/cmdline", "/debug/pprof/symbol",
		"/debug/pprof/trace", "/debug/flags/v", "/debug/flags/", "/spec/", "/no-such-route", "/..", "/%2e%2e/etc/passwd",
	)
}

// TestSecurity: who may ask a node what. The node answers itself here, since
// the API server would stand in between.
func TestSecurity(t *testing.T) {
	require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	ns := e.namespace(t, "security")
	e.applyIn(t, ns, sleeper)
	pod := e.untilPod(t, patience, ns, "sleeper", ready)
	secret := plantSecret(t, e, string(pod.UID))
	routes := stockRoutes(ns, "sleeper", string(pod.UID))

	t.Run("nobody", func(t *testing.T) {
		walk(t, e, e.client(t, nil), routes, http.StatusUnauthorized)
	})
	t.Run("a stranger's certificate", func(t *testing.T) {
		other, err := plane.NewAuthority("stranger")
		if err != nil {
			t.Fatal(err)
		}
		walk(t, e, e.client(t, certificate(t, other, plane.Identity{User: "admin", Groups: []string{"system:masters"}})), routes, http.StatusUnauthorized)
	})
	t.Run("an expired certificate", func(t *testing.T) {
		expired := plane.Identity{User: "admin", Groups: []string{"system:masters"}, Until: time.Now().Add(-time.Minute)}
		walk(t, e, e.client(t, certificate(t, e.Plane.Authority, expired)), routes, http.StatusUnauthorized)
	})
	t.Run("a bad token", func(t *testing.T) {
		walk(t, e, withToken(e.client(t, nil), "not-a-token"), routes, http.StatusUnauthorized)
	})
	t.Run("a user without rights", func(t *testing.T) {
		walk(t, e, e.client(t, certificate(t, e.Plane.Authority, plane.Identity{User: "jane"})), routes, http.StatusForbidden)
	})
	t.Run("a service account without rights", func(t *testing.T) {
		token := strings.TrimSpace(e.kubectl(t, "-n", ns, "create", "token", "default"))
		walk(t, e, withToken(e.client(t, nil), token), routes, http.StatusForbidden)
	})
	t.Run("another node", func(t *testing.T) {
		walk(t, e, e.client(t, certificate(t, e.Plane.Authority, plane.Identity{User: "system:node:other", Groups: []string{"system:nodes"}})), routes, http.StatusForbidden)
	})
	t.Run("fine-grained rights", func(t *testing.T) { fineGrained(t, e) })
	t.Run("escapes", func(t *testing.T) { escapes(t, e, ns, secret) })
}

// client speaks to the node of the world.
func (e *env) client(t *testing.T, cert *tls.Certificate) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, RootCAs: x509.NewCertPool()}
	if cert != nil {
		// Also when the server does not name the authority: a stranger would too.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func certificate(t *testing.T, a *plane.Authority, id plane.Identity) *tls.Certificate {
	t.Helper()
	cert, key, err := a.Issue(id)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// bearer adds a token to each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}

func withToken(client *http.Client, token string) *http.Client {
	client.Transport = bearer{token, client.Transport}
	return client
}

// walk asks every route by every method, and wants the same refusal from all.
func walk(t *testing.T, e *env, client *http.Client, routes []string, want int) {
	t.Helper()
	for _, route := range routes {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			status, body, err := e.ask(t, client, method, route)
			if err != nil || status != want {
				t.Errorf("%s %s: %d %v, want %d: %.200q", method, route, status, err, want, body)
			}
		}
	}
}

// ask sends the path as it is written, with dots and escapes.
func (e *env) ask(t *testing.T, client *http.Client, method, route string) (int, string, error) {
	t.Helper()
	target, err := url.Parse(fmt.Sprintf("https://%s:%d", e.Nodes[0].Bed.NodeIP, world.KubeletPort))
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(route, "?")
	target.Opaque, target.RawQuery = "//"+target.Host+path, query
	req := (&http.Request{Method: method, URL: target, Host: target.Host, Header: http.Header{}}).WithContext(t.Context())
	reply, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, 1<<20))
	return reply.StatusCode, string(body), err
}

// fineGrained: rights on one subresource open that and nothing else.
func fineGrained(t *testing.T, e *env) {
	rights := map[string][]string{ // by subresource of nodes, what it opens
		"pods": {"/pods", "/runningpods/"}, "healthz": {"/healthz"}, "configz": {"/configz"}, "metrics": {"/metrics"},
	}
	for sub := range rights {
		e.apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "test:node-%[1]s"}
rules: [{apiGroups: [""], resources: ["nodes/%[1]s"], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "test:node-%[1]s"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "test:node-%[1]s"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "%[1]s-reader"}]
`, sub))
	}
	for sub, open := range rights {
		client := e.client(t, certificate(t, e.Plane.Authority, plane.Identity{User: sub + "-reader"}))
		for _, route := range open {
			// RBAC of the API server takes a moment to see new bindings.
			e.eventually(t, 20*time.Second, func() error {
				status, body, err := e.ask(t, client, http.MethodGet, route)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("with nodes/%s, %s: %d: %.200q", sub, route, status, body)
				}
				return err
			})
		}
		for other, closed := range rights {
			for _, route := range closed {
				if other == sub {
					continue
				}
				if status, body, err := e.ask(t, client, http.MethodGet, route); err != nil || status != http.StatusForbidden {
					t.Errorf("with nodes/%s, %s: %d %v, want 403: %.200q", sub, route, status, err, body)
				}
			}
		}
	}
}

// plantSecret writes a file beside the pods' folders that nobody may reach
// through the API, and makes links to it where a pod could. It returns the
// content.
func plantSecret(t *testing.T, e *env, uid string) string {
	t.Helper()
	secret := "only root may read this"
	file := filepath.Join(e.Nodes[0].Bed.Dir, "secret.log")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(filepath.Join(e.Nodes[0].Bed.PodLogs, "*"+uid, "main"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("the log folder of the container: %v, %v", dirs, err)
	}
	if err := os.Symlink(file, filepath.Join(dirs[0], "9.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, "/var/log/nodekit-test-link"); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove("/var/log/nodekit-test-link") })
	return secret
}

// escapes: even the admin gets nothing from outside of a pod's folder, or of
// the log folder.
func escapes(t *testing.T, e *env, ns, secret string) {
	admin := e.client(t, certificate(t, e.Plane.Authority, plane.Identity{User: "admin", Groups: []string{"system:masters"}}))
	bed := e.Nodes[0].Bed.Dir
	up := strings.Repeat("../", 12)
	upEscaped := strings.Repeat("..%2f", 12)
	for _, route := range []string{
		"/containerLogs/" + ns + "/sleeper/..%2f..%2f..%2f..%2fsecret.log",
		"/containerLogs/" + ns + "/sleeper/" + upEscaped + strings.ReplaceAll(bed[1:], "/", "%2f") + "%2fsecret.log",
		"/containerLogs/" + ns + "/../sleeper/main", "/containerLogs/..%2f..%2f/sleeper/main",
		"/containerLogs/" + ns + "/sleeper%00/main", "/containerLogs/" + ns + "/sleeper/main%0a", "/containerLogs/" + ns + "/sleeper/%1b[31mmain",
		"/logs/" + up + bed[1:] + "/secret.log", "/logs/" + upEscaped + bed[1:] + "/secret.log", "/logs/nodekit-test-link", "/logs//etc/passwd",
		"/logs/?query=../../" + bed + "/secret.log", "/logs/?query=kubelet%0a/etc/passwd", "/logs/?query=" + url.QueryEscape("-D/etc"),
		"/exec/" + ns + "/sleeper/..%2fmain?command=id&output=1", "/exec/" + ns + "/sleeper%2f..%2fother/main?command=id&output=1",
		"/checkpoint/" + ns + "/sleeper/..%2f..%2f..%2fmain",
		"/portForward/" + ns + "/..%2f..%2f?port=10250",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			status, body, err := e.ask(t, admin, method, route)
			if err != nil {
				t.Errorf("%s %s: %v", method, route, err)
			}
			if strings.Contains(body, secret) || strings.Contains(body, "root:x:0:0") || strings.Contains(body, "root:*:") {
				t.Errorf("%s %s gives what it must not (%d): %.200q", method, route, status, body)
			}
			if status >= 200 && status < 300 && !strings.HasPrefix(route, "/logs/?query") {
				t.Errorf("%s %s: %d, want a refusal: %.200q", method, route, status, body)
			}
		}
	}
	if said := e.kubectl(t, "-n", ns, "logs", "sleeper"); strings.Contains(said, secret) {
		t.Errorf("the log follows a link out of the pod's folder: %q", said)
	}
	if !e.Nodes[0].Agent.Alive() {
		t.Fatal("the agent did not live through it")
	}
	if status, _, err := e.ask(t, admin, http.MethodGet, "/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("after all that, /healthz: %d, %v", status, err)
	}
}
