package scenarios

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/cluster/world"
)

// servedRoute is a line of the agent's own list.
type servedRoute struct {
	Method       string   `json:"method"`
	Path         string   `json:"path"`
	Subresources []string `json:"subresources"`
}

// servedRoutes are what the agent itself says that it serves, so that a route
// that is new can not be forgotten here.
func servedRoutes(t *testing.T, e *env) []servedRoute {
	t.Helper()
	text, err := e.Nodes[0].Agent.Get(t.Context(), "/debug/routes")
	if err != nil {
		t.Fatal(err)
	}
	var served []servedRoute
	if err := json.Unmarshal([]byte(text), &served); err != nil {
		t.Fatalf("%v: %.300q", err, text)
	}
	for _, known := range []string{
		"/exec/{namespace}/{pod}/{uid}/{container}", "/run/{namespace}/{pod}/{container}", "/portForward/{namespace}/{pod}",
		"/checkpoint/{namespace}/{pod}/{container}", "/allocatedPods", "/logs/", "/debug/pprof/", "/metrics", "/metrics/probes", "/statusz",
	} {
		if !slices.ContainsFunc(served, func(r servedRoute) bool { return r.Path == known }) {
			t.Errorf("the agent's list of routes has no %s: %v", known, served)
		}
	}
	return served
}

// target is what the names in patterns stand for.
type target struct{ namespace, pod, uid, container string }

func (o target) fill(pattern string) string {
	return strings.NewReplacer("{namespace}", o.namespace, "{pod}", o.pod, "{uid}", o.uid, "{container}", o.container, "{$}", "").Replace(pattern)
}

// besides are paths that the stock kubelet serves, or nobody: those that this
// agent has no route for must be refused as well.
func besides(o target) []string {
	object := o.namespace + "/" + o.pod
	return []string{
		"/exec/" + object + "/main?command=id&input=1&output=1&error=1", "/run/" + object + "/main?cmd=id",
		"/portForward/" + object + "?port=80", "/containerLogs/" + object + "/main?follow=true",
		"/", "/pods/", "/healthz/", "/metrics/cadvisor", "/metrics/resource", "/metrics/slis", "/stats/summary", "/stats/",
		"/logs/syslog", "/logs/?query=kubelet", "/logs?query=kubelet", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1",
		"/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/trace", "/debug/flags/", "/spec/", "/no-such-route", "/..", "/%2e%2e/etc/passwd",
	}
}

// allRoutes are the gates and fields that open every route there is.
func allRoutes() map[string]any {
	return map[string]any{
		"enableSystemLogHandler": true, "enableSystemLogQuery": true,
		"featureGates": map[string]any{
			"NodeLogQuery": true, "ContainerCheckpoint": true, "PodLogsQuerySplitStreams": true,
			"ComponentStatusz": true, "ComponentFlagz": true, "KubeletAllocatedPodsEndpoint": true,
		},
	}
}

// TestSecurity: who may ask a node what. The node answers itself here, since
// the API server would stand in between.
func TestSecurity(t *testing.T) {
	require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{Config: allRoutes()})
	ns := e.namespace(t, "security")
	e.applyIn(t, ns, sleeper)
	pod := e.untilPod(t, patience, ns, "sleeper", ready)
	sleeper := target{ns, "sleeper", string(pod.UID), "main"}
	served := servedRoutes(t, e)
	routes := besides(sleeper)
	for _, r := range served {
		routes = append(routes, sleeper.fill(r.Path))
	}

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
	t.Run("fine-grained rights", func(t *testing.T) { fineGrained(t, e, sleeper, served) })
	t.Run("bad names", func(t *testing.T) { badNames(t, e, sleeper, served) })
	t.Run("container logs", func(t *testing.T) { linkedLogs(t, e, ns) })
	t.Run("node logs", func(t *testing.T) { nodeLogs(t, e) })
	if !e.Nodes[0].Agent.Alive() {
		t.Fatal("the agent did not live through it")
	}
	if status, _, err := e.ask(t, e.admin(t), http.MethodGet, "/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("after all that, /healthz: %d, %v", status, err)
	}
	if log := e.Nodes[0].Agent.Log(1_000_000); strings.ContainsAny(log, "\x00\x1b\x7f") {
		t.Error("control characters of a request are in the agent's log as they came")
	}
}

// admin is a client that may do everything.
func (e *env) admin(t *testing.T) *http.Client {
	t.Helper()
	return e.client(t, certificate(t, e.Plane.Authority, plane.Identity{User: "admin", Groups: []string{"system:masters"}}))
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

// fineGrained: rights on one subresource open the routes that ask for it, and
// no other.
func fineGrained(t *testing.T, e *env, o target, served []servedRoute) {
	subs := map[string]string{} // with a path that each opens
	for _, r := range served {
		if r.Method != http.MethodPost && !strings.Contains(r.Path, "{") {
			for _, sub := range r.Subresources {
				subs[sub] = o.fill(r.Path)
			}
		}
	}
	subs["checkpoint"] = o.fill("/checkpoint/{namespace}/{pod}/{container}")
	for sub := range subs {
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
	for sub, first := range subs {
		client := e.client(t, certificate(t, e.Plane.Authority, plane.Identity{User: sub + "-reader"}))
		// RBAC of the API server takes a moment to see new bindings.
		e.eventually(t, 20*time.Second, func() error {
			status, body, err := e.ask(t, client, http.MethodGet, first)
			if err == nil && status == http.StatusForbidden {
				err = fmt.Errorf("with nodes/%s, %s: %d: %.200q", sub, first, status, body)
			}
			return err
		})
		for _, r := range served {
			path := o.fill(r.Path)
			want := slices.Contains(r.Subresources, sub)
			status, body, err := e.ask(t, client, http.MethodGet, path)
			if err != nil || want == (status == http.StatusForbidden) || status == http.StatusUnauthorized {
				t.Errorf("with nodes/%s, GET %s: %d %v; opened by %v: %.200q", sub, path, status, err, r.Subresources, body)
			}
			if status, body, err := e.ask(t, client, http.MethodPost, path); err != nil || status != http.StatusForbidden { // get is not create
				t.Errorf("with get of nodes/%s, POST %s: %d %v, want 403: %.200q", sub, path, status, err, body)
			}
		}
	}
}

// evil are names that lead elsewhere where somebody makes a path of them, or
// end early, or write on a terminal; %s is a name that there is.
func evil() []string {
	return []string{
		"..", ".", "%%2e%%2e", "%%2e%%2e/", "..%%2f", "%%2e%%2e%%2f%%2e%%2e%%2f", "..%%2f..%%2f..%%2f..%%2fetc%%2fpasswd", "%%2fetc%%2fpasswd",
		"..%%5c..%%5c", "..%%252f", "%%252e%%252e%%252f", "%s%%2f..%%2f%s", "..%%2f%s", ".%%2f%s", "%s%%2f", "%s/../..",
		"%s%%00", "%%00", "%s%%00.log", "%s%%0a", "%%0a", "%s%%0d%%0aX-Evil:%%201", "%%1b[31m%s", "%s%%08", "%s%%7f", "%s%%09", "%%20%s", "%s%%20", "%s%%ff", "%s%%c0%%af",
	}
}

// badNames puts an evil name in the place of each name of each route. The admin
// asks, so that nothing but the route itself refuses it.
func badNames(t *testing.T, e *env, o target, served []servedRoute) {
	admin := e.admin(t)
	asked := 0
	for _, r := range served {
		for _, place := range []struct{ name, real string }{
			{"{namespace}", o.namespace}, {"{pod}", o.pod}, {"{uid}", o.uid}, {"{container}", o.container},
		} {
			if !strings.Contains(r.Path, place.name) {
				continue
			}
			for _, pattern := range evil() {
				name := strings.ReplaceAll(strings.ReplaceAll(pattern, "%s", place.real), "%%", "%")
				path := o.fill(strings.ReplaceAll(r.Path, place.name, name)) + "?command=id&cmd=id&output=1&port=80"
				asked++
				e.refused(t, admin, r.Method, path)
			}
		}
	}
	t.Logf("%d requests with bad names", asked)
	if made, err := os.ReadDir(filepath.Join(e.Nodes[0].Agent.Root, "checkpoints")); err == nil && len(made) > 0 {
		t.Errorf("an archive was written: %v", made)
	}
	for _, query := range []string{"port=..%2f", "port=80%00", "port=0", "port=65536", "port=-1", "port=80%0a"} {
		e.refused(t, admin, http.MethodGet, o.fill("/portForward/{namespace}/{pod}?"+query))
	}
	for _, query := range []string{"timeout=..", "timeout=1%00", "timeout=-1"} {
		e.refused(t, admin, http.MethodPost, o.fill("/checkpoint/{namespace}/{pod}/{container}?"+query))
	}
}

// refused asks for what nobody may have, and returns the answer.
func (e *env) refused(t *testing.T, client *http.Client, method, route string) string {
	t.Helper()
	status, body, err := e.ask(t, client, method, route)
	if err != nil {
		t.Errorf("%s %s: %v", method, route, err)
	}
	if status < http.StatusMultipleChoices {
		t.Errorf("%s %s: %d, want a refusal: %.200q", method, route, status, body)
	}
	keepsSecrets(t, method+" "+route, body)
	return body
}

// theSecret is what files hold that nobody may reach. It is a line as runtimes
// write logs, so that it would be served where it is taken for a log.
const (
	theSecret  = "only root may read this"
	secretLine = "2026-01-02T03:04:05.000000006Z stdout F " + theSecret + "\n"
)

// keepsSecrets looks for what must not be in an answer.
func keepsSecrets(t *testing.T, what, body string) {
	t.Helper()
	for _, bad := range []string{theSecret, "root:x:0:0", "root:*:", "\x00", "\x1b", "\x7f"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s gives what it must not (%q): %.200q", what, bad, body)
		}
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// linkedLogs: whoever can write in a pod's log folder, as a pod with a hostPath
// volume can, gets nothing served in its name that lies elsewhere. Each attack
// is on the file that the API opens, which the first two rows show.
func linkedLogs(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, strings.ReplaceAll(talker, "talker", "linked"))
	e.applyIn(t, ns, strings.ReplaceAll(talker, "talker", "other"))
	pod, other := e.untilPod(t, patience, ns, "linked", ready), e.untilPod(t, patience, ns, "other", ready)
	bed := e.Nodes[0].Bed
	dir, others := containerLogs(t, e, string(pod.UID)), containerLogs(t, e, string(other.UID))
	outside := filepath.Join(bed.Dir, "outside")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := write(t, filepath.Join(outside, "0.log"), secretLine)
	relative, err := filepath.Rel(dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	log, kept := filepath.Join(dir, "0.log"), filepath.Join(dir, "0.log.kept")
	if err := os.Rename(log, kept); err != nil {
		t.Fatal(err)
	}
	admin := e.admin(t)
	path := "/containerLogs/" + ns + "/linked/main"
	for _, row := range []struct {
		name string
		put  func() error
		says string // empty: a refusal
	}{
		{"the log itself", func() error { return os.Link(kept, log) }, "line 5"},
		{"another file of its name", func() error {
			return os.WriteFile(log, []byte(strings.ReplaceAll(secretLine, theSecret, "planted")), 0o600)
		}, "planted"},
		{"a link out", func() error { return os.Symlink(secret, log) }, ""},
		{"a relative link out", func() error { return os.Symlink(relative, log) }, ""},
		{"a link to a link out", func() error {
			return errors.Join(os.Symlink(secret, log+".hop"), os.Symlink("0.log.hop", log))
		}, ""},
		{"a link to another pod's log", func() error { return os.Symlink(filepath.Join(others, "0.log"), log) }, ""},
		{"a link to /etc/passwd", func() error { return os.Symlink("/etc/passwd", log) }, ""},
		{"a pipe", func() error { return syscall.Mkfifo(log, 0o600) }, ""},
		{"a device", func() error { return os.Symlink("/dev/zero", log) }, ""},
		{"a folder", func() error { return os.Mkdir(log, 0o700) }, ""},
	} {
		if err := row.put(); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		for _, query := range []string{"", "?tailLines=10", "?limitBytes=100&timestamps=true", "?stream=Stdout"} {
			if row.says == "" {
				e.refused(t, admin, http.MethodGet, path+query)
				continue
			}
			if status, body, err := e.ask(t, admin, http.MethodGet, path+query); err != nil || status != http.StatusOK || !strings.Contains(query+body, row.says) && query == "" {
				t.Errorf("%s: %s: %d %v: %.200q", row.name, query, status, err, body)
			}
		}
		if said, err := e.Plane.Kubectl(t.Context(), "-n", ns, "logs", "linked", "-c", "main"); (err == nil) != (row.says != "") {
			t.Errorf("%s: kubectl logs: %v: %.200q", row.name, err, said)
		} else {
			keepsSecrets(t, row.name+": kubectl logs", said)
		}
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
	}
	linkedFolder(t, e, ns, dir, outside)
}

// containerLogs is the log folder of the container main of a pod.
func containerLogs(t *testing.T, e *env, uid string) string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(e.Nodes[0].Bed.PodLogs, "*"+uid, "main"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("the log folder of the container: %v, %v", dirs, err)
	}
	return dirs[0]
}

// linkedFolder: the folder of the log is a link out. It is neither read through
// nor, when the pod goes, removed through.
func linkedFolder(t *testing.T, e *env, ns, dir, outside string) {
	if err := os.Rename(dir, dir+".kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	e.refused(t, e.admin(t), http.MethodGet, "/containerLogs/"+ns+"/linked/main")
	e.kubectl(t, "-n", ns, "delete", "pod", "linked", "--timeout=60s")
	e.eventually(t, patience, func() error {
		if _, err := os.Lstat(filepath.Dir(dir)); err == nil {
			return fmt.Errorf("%s is still there", filepath.Dir(dir))
		}
		return nil
	})
	if text, err := os.ReadFile(filepath.Join(outside, "0.log")); err != nil || string(text) != secretLine {
		t.Errorf("the pod's removal went through the link: %q, %v", text, err)
	}
}

// nodeLogs attacks /logs/ and log queries: nothing outside of /var/log.
func nodeLogs(t *testing.T, e *env) {
	bed := e.Nodes[0].Bed.Dir
	secret := write(t, filepath.Join(bed, "secret.log"), secretLine)
	dir, err := os.MkdirTemp("/var/log", "nodekit-test-") //nolint:usetesting // the kubelet serves what is below /var/log
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	service := "svc" + strings.TrimPrefix(name, "nodekit-test-")
	t.Cleanup(func() {
		_ = errors.Join(os.RemoveAll(dir), os.Remove("/var/log/"+service+".log"), os.Remove("/var/log/"+service+"-out.log"))
	})
	write(t, filepath.Join(dir, "plain.log"), "plain says")
	write(t, "/var/log/"+service+".log", "service says")
	for link, to := range map[string]string{
		dir + "/out": secret, dir + "/relative": strings.Repeat("../", 12) + secret[1:], dir + "/folder": bed, dir + "/root": "/",
		dir + "/up": "../..", dir + "/twice": "out", "/var/log/" + service + "-out.log": secret,
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	admin := e.admin(t)
	for path, want := range map[string]string{ // it is served at all, and queries are on
		"/logs/" + name + "/plain.log": "plain says", "/logs/?query=" + service: "service says",
		"/logs/?query=%2f" + name + "%2fplain.log": "plain says", "/logs/?query=" + name + "%5cplain.log": "plain says",
	} {
		if status, body, err := e.ask(t, admin, http.MethodGet, path); err != nil || status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %v, want %q: %.300q", path, status, err, want, body)
		}
	}
	escaped := url.QueryEscape
	up := strings.Repeat("../", 12)
	files := []string{
		up + secret[1:], secret, "/" + secret, "/etc/passwd", up + "etc/passwd", "..\\..\\etc\\passwd", "./../" + strings.TrimPrefix(secret, "/"),
		name + "/out", name + "/relative", name + "/twice", name + "/folder/secret.log", name + "/root/etc/passwd", name + "/up/etc/passwd",
		name + "/../../../etc/passwd", "/" + name + "/out\x00", "/" + name + "/plain.log\x00", "/" + name + "/plain.log\n", name + "/\x1b[31m",
	}
	for _, file := range files {
		e.refused(t, admin, http.MethodGet, "/logs/?query="+escaped(file))
		e.refused(t, admin, http.MethodGet, "/logs/"+url.PathEscape(file))
		e.refused(t, admin, http.MethodGet, "/logs/"+strings.NewReplacer("\x00", "%00", "\n", "%0a", "\x1b", "%1b", "\\", "%5c").Replace(file))
	}
	for _, query := range []string{
		"query=" + escaped(service+"\n/etc/passwd"), "query=" + escaped(service+"\x00"), "query=" + escaped("\x1b[31m"), "query=" + escaped("a b"),
		"query=" + escaped("$(id)"), "query=" + escaped("kubelet;id"), "query=" + escaped("--file=/etc/passwd\t"), "query=" + escaped("~root"),
		"query=", "query=" + service + "&query=" + escaped("/etc/passwd"), "query=/etc/passwd&query=/etc/shadow",
		"query=" + service + "&tailLines=-1", "query=" + service + "&sinceTime=" + escaped("now; id"), "query=" + service + "&boot=1",
		"query=" + service + "&pattern=" + escaped("(["), "tailLines=1", "query=" + strings.Repeat("a", 300),
	} {
		e.refused(t, admin, http.MethodGet, "/logs/?"+query)
	}
	e.refused(t, admin, http.MethodGet, "/logs/"+name+"/plain.log?query="+service) // a path and a query
	// A service's name may have these; what is found then is none of the secret.
	for _, service := range []string{"..", "-D", "--directory", "--version", service + "-out", service + "-out.log"} {
		status, body, err := e.ask(t, admin, http.MethodGet, "/logs/?query="+escaped(service))
		if err != nil || strings.Contains(body, "systemd ") {
			t.Errorf("query %s: %d %v: %.200q", service, status, err, body)
		}
		keepsSecrets(t, "query "+service, body)
	}
}
