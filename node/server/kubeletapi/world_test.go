package kubeletapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/authn"
	"nodekit.dev/node/server/authz"
	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a node with one pod, and its API over HTTPS.
type world struct {
	t        *testing.T
	dir      string
	address  string
	readOnly string
	routes   []node.Ordered[server.Route]
	cfg      kubeletapi.Config
	ca       authority
	client   *http.Client // without credentials

	mu      sync.Mutex
	views   []node.PodView
	seen    runtime.Pod
	lookErr error
	target  *url.URL // of the runtime's streaming server
	asked   []any    // requests to the runtime
	allowed func(authorizationv1.SubjectAccessReviewSpec) bool
	reviews int
	ends    *kubeletapi.Ends
	copies  func(context.Context, kubeletapi.LogRequest) error
	command func(id string, cmd []string) (kubeletapi.CommandResult, error)
}

// newWorld starts it; change may alter the configuration before.
func newWorld(t *testing.T, change ...func(*kubeletapi.Config, *kubeletapi.Parts)) *world {
	w := &world{t: t, dir: t.TempDir(), ca: newAuthority(t, "cluster"), ends: kubeletapi.NewEnds()}
	w.views = []node.PodView{webPod()}
	w.seen = runtime.Pod{
		UID: "u-1", Namespace: "default", Name: "web",
		Sandboxes: []runtime.Sandbox{{ID: "s1", Ready: true}},
		Containers: []runtime.Container{
			{ID: "c2", Name: "app", State: runtime.ContainerRunning, Image: "web:1", LogPath: filepath.Join(w.dir, "pods/default_web_u-1/app/1.log")},
			{ID: "c1", Name: "app", State: runtime.ContainerExited, LogPath: filepath.Join(w.dir, "pods/default_web_u-1/app/0.log")},
		},
	}
	w.command = func(string, []string) (kubeletapi.CommandResult, error) { return kubeletapi.CommandResult{}, nil }
	w.allowed = func(authorizationv1.SubjectAccessReviewSpec) bool { return true }
	w.cfg = kubeletapi.Default()
	w.cfg.PodLogsDir, w.cfg.CheckpointDir, w.cfg.NodeLogDir = filepath.Join(w.dir, "pods"), filepath.Join(w.dir, "checkpoints"), filepath.Join(w.dir, "log")
	w.cfg.SystemLogQuery, w.cfg.SplitLogStreams, w.cfg.AllocatedPods = true, true, true
	must(t, os.MkdirAll(w.cfg.NodeLogDir, 0o755))
	parts := kubeletapi.Parts{
		Pods: w, Runtime: w, Logs: w, Ends: w.ends, Commands: w, Checkpointer: w, HostCommands: w,
		Configz:  func() any { return map[string]string{"kubeletconfig": "x"} },
		Flags:    func() map[string]string { return map[string]string{"v": "2", "node-ip": ""} },
		Status:   server.Status{Component: "kubelet", Version: "1.37.2", Emulation: "1.37", GoVersion: "go1", Started: time.Now()},
		Profiler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "profile") }),
		SetVerbosity: func(level string) (string, error) {
			if level != "4" {
				return "", errors.New("no such level")
			}
			return "successfully set klog.logging.verbosity to 4", nil
		},
		Checks: []node.Ordered[server.Check]{{Name: "disk", Value: server.Check{Check: func(*http.Request) error { return nil }}}},
	}
	for _, c := range change {
		c(&w.cfg, &parts)
	}
	routes, err := kubeletapi.Routes(w.cfg, parts)
	must(t, err)
	w.routes = server.Merge(routes, []node.Ordered[server.Route]{{Name: "metrics", Value: server.Route{
		Pattern: "/metrics", ReadOnly: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "series") }),
	}}})
	w.serve()
	return w
}

func webPod() node.PodView {
	running := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	return node.PodView{
		UID: "u-1", Namespace: "default", Name: "web", Phase: lifecycle.Running,
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID("u-1"), Namespace: "default", Name: "web"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "web:1"}, {Name: "tty", TTY: true}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", ContainerID: "containerd://c2", State: running("c2"),
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://c1"}},
		}}},
	}
}

// serve runs the API until the test ends.
func (w *world) serve() {
	t := w.t
	cas, err := authn.NewClientCAs(authn.CAConfig{File: w.ca.file}, nil)
	must(t, err)
	must(t, cas.Load())
	tokens, err := authn.NewTokens(authn.DefaultTokens(), tokenReviews{})
	must(t, err)
	webhook, err := authz.NewWebhook(authz.WebhookConfig{Timeout: 10 * time.Second}, w)
	must(t, err)
	w.address, w.readOnly = freeAddress(t), freeAddress(t)
	serving := w.ca.issue(t, pkix.Name{CommonName: "node-1"})
	api, err := server.NewAPI(server.APIConfig{
		Address: w.address, ReadOnlyAddress: w.readOnly, NodeName: "node-1",
		TLS: server.TLSConfig{
			Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }, ClientCAs: cas.Pool,
		},
	}, server.APIParts{
		Routes: w.routes,
		Authenticators: []node.Ordered[server.Authenticator]{
			{Name: "x509", Value: authn.X509(cas)}, {Name: "token", After: []string{"x509"}, Value: tokens},
		},
		Authorizers: []node.Ordered[server.Authorizer]{{Name: "webhook", Value: webhook}},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	w.client = w.as(nil)
	await(t, func() bool {
		conn, err := net.Dial("tcp", w.readOnly)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// as is a client with a certificate; nil: without one.
func (w *world) as(cert *tls.Certificate) *http.Client {
	cfg := &tls.Config{RootCAs: w.ca.pool(), ServerName: "node-1"}
	if cert != nil {
		cfg.Certificates = []tls.Certificate{*cert}
	}
	transport := &http.Transport{TLSClientConfig: cfg}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// admin is a client that the cluster's authority vouches for.
func (w *world) admin() *http.Client {
	cert := w.ca.issue(w.t, pkix.Name{CommonName: "admin", Organization: []string{"admins"}})
	return w.as(&cert)
}

// do answers with the status and the body.
func (w *world) do(client *http.Client, method, path string, header http.Header) (int, string) {
	w.t.Helper()
	req := &http.Request{Method: method, URL: &url.URL{Scheme: "https", Host: w.address, Opaque: "//" + w.address + path}, Header: header}
	if header == nil {
		req.Header = http.Header{}
	}
	resp, err := client.Do(req.WithContext(w.t.Context()))
	must(w.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return resp.StatusCode, string(body)
}

// The world is what the routes are made of.

func (w *world) Pods() []node.PodView {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.views)
}

func (w *world) LookPod(_ context.Context, uid string) (runtime.Pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if uid != w.seen.UID {
		return runtime.Pod{UID: uid}, w.lookErr
	}
	return w.seen, w.lookErr
}

func (w *world) ListPods(context.Context) ([]runtime.Pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []runtime.Pod{w.seen, {UID: "u-2", Namespace: "x", Name: "dead"}}, w.lookErr
}

func (w *world) ask(req any) (*url.URL, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, req)
	if w.target == nil {
		return nil, errors.New("the runtime is not to be asked")
	}
	return w.target, nil
}

func (w *world) Exec(_ context.Context, req runtime.ExecRequest) (*url.URL, error) { return w.ask(req) }

func (w *world) Attach(_ context.Context, req runtime.ExecRequest) (*url.URL, error) {
	return w.ask(req)
}

func (w *world) PortForward(_ context.Context, req runtime.PortForwardRequest) (*url.URL, error) {
	return w.ask(req)
}

func (w *world) RunCommand(_ context.Context, id string, cmd []string) (kubeletapi.CommandResult, error) {
	return w.command(id, cmd)
}

func (w *world) CheckpointContainer(_ context.Context, req runtime.CheckpointRequest) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, req)
	return w.lookErr
}

func (w *world) CopyLog(ctx context.Context, req kubeletapi.LogRequest) error {
	if w.copies == nil {
		return errors.New("no logs")
	}
	return w.copies(ctx, req)
}

func (w *world) Run(context.Context, io.Writer, string, ...string) error {
	return errors.New("no journal")
}

// Review allows what the test does.
func (w *world) Review(_ context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reviews++
	answer := r.DeepCopy()
	answer.Status.Allowed = w.allowed(r.Spec)
	return answer, nil
}

func (w *world) allow(f func(authorizationv1.SubjectAccessReviewSpec) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed = f
}

// tokenReviews know the token "good" alone.
type tokenReviews struct{}

func (tokenReviews) Review(_ context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	answer := r.DeepCopy()
	if r.Spec.Token == "good" {
		answer.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "robot", Groups: []string{"robots"}}}
	}
	return answer, nil
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	file := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return authority{cert, key, file}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a authority) issue(t *testing.T, subject pkix.Name) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{subject.CommonName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, key.Public(), a.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// freeAddress is a port of loopback that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l.Close()
	return l.Addr().String()
}

// await waits for something that tells nobody.
func await(t *testing.T, is func() bool) {
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

// pathOf fills the names of a pattern in.
func pathOf(pattern string) (method, path string) {
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		method, path = "", pattern
	}
	return method, strings.NewReplacer("{namespace}", "default", "{pod}", "web", "{uid}", "u-1", "{container}", "app", "{$}", "").Replace(path)
}
