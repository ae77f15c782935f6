package nodecert

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/kubeclient"
)

func decode(r *http.Request, into runtime.Object) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		return err
	}
	_, _, err = serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(text, nil, into)
	return err
}

// logs is a log that can be searched while it is written.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// running is a Manager whose Run is stopped with the test.
type running struct {
	*Manager
	logs *logs
	stop func()
}

func start(t *testing.T, cfg Config, addresses func() []corev1.NodeAddress, before ...func(*Manager)) running {
	t.Helper()
	out := &logs{}
	m, err := New(cfg, addresses, slog.New(slog.NewTextHandler(out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*rotator{m.client, m.server} {
		if r != nil {
			r.retry.Base, r.retry.Max = 50*time.Millisecond, 200*time.Millisecond
		}
	}
	for _, call := range before {
		call(m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", out)
		}
	})
	t.Cleanup(stop)
	return running{m, out, stop}
}

// eventually polls until ok; a test has no event for what others do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func ready(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("not ready within 20 s")
	}
}

// A token becomes a certificate, a kubeconfig that the next start needs
// nothing else but, and later another certificate.
func TestBootstrap(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.kubeconfig(p.bootstrap, "first")
	cfg := p.config()
	m := start(t, cfg, nil)
	endpoint, err := m.Endpoint()
	if err != nil || endpoint.REST.Host != a.URL || endpoint.REST.BearerToken != "" || !endpoint.Managed {
		t.Fatalf("endpoint %+v, %v", endpoint, err)
	}
	ready(t, m.Ready())
	pair, err := m.Client(nil)
	if err != nil || pair.Leaf.Subject.String() != "CN=system:node:edge-7,O=system:nodes" {
		t.Fatalf("%v, %v", pair, err)
	}
	eventually(t, "the kubeconfig", func() bool { _, err := os.Stat(p.kubeconfig); return err == nil })
	config, err := kubeclient.Load(p.kubeconfig)
	current := filepath.Join(p.pki, "kubelet-client-current.pem")
	if err != nil || config.CertFile != current || config.KeyFile != current || config.Host != a.URL {
		t.Fatalf("kubeconfig %v, %v", config, err)
	}
	if _, err := os.Stat(filepath.Join(p.pki, "kubelet-client.key.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key of the request is left: %v", err)
	}
	target, err := os.Readlink(current)
	if info, statErr := os.Stat(current); err != nil || statErr != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(filepath.Base(target), "kubelet-client-20") {
		t.Errorf("%s -> %s, %v, %v", current, target, err, statErr)
	}
	m.stop()

	// The next start asks nobody.
	a.set(func() { a.away = true })
	if err := os.Remove(p.bootstrap); err != nil {
		t.Fatal(err)
	}
	again := start(t, cfg, nil)
	ready(t, again.Ready())
	if got, err := again.Client(nil); err != nil || !got.Leaf.Equal(pair.Leaf) {
		t.Fatalf("after a restart: %v, %v", got, err)
	}
	if endpoint, err := again.Endpoint(); err != nil || !endpoint.Managed {
		t.Fatalf("%+v, %v", endpoint, err)
	}
}

// The first certificate comes old, so that it is due within seconds and still
// valid for long enough on a busy machine.
func TestRotation(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.age, a.life = 80*time.Second, 20*time.Second
	a.kubeconfig(p.bootstrap, "first")
	rotated := make(chan struct{}, 10)
	cfg := p.config()
	lived := make(chan time.Duration, 10)
	cfg.Observer.Rotated = func(_ Kind, _ *x509.Certificate, d time.Duration) { lived <- d }
	var first *x509.Certificate
	m := start(t, cfg, nil, func(m *Manager) {
		m.OnRotate(func() {
			if first == nil {
				first = m.Leaf(KindClient)
				a.set(func() { a.age, a.life = 0, time.Hour; a.token = "another" }) // the first one can not be used twice
			}
			rotated <- struct{}{}
		})
	})
	ready(t, m.Ready())
	ready(t, rotated)
	ready(t, rotated)
	if second := m.Leaf(KindClient); second.SerialNumber.Cmp(first.SerialNumber) == 0 {
		t.Fatal("the same certificate")
	}
	if d := <-lived; d < 70*time.Second || d > 100*time.Second {
		t.Errorf("rotated after %v of 100 s", d)
	}
	if _, askers := a.requests(); askers[0] != "bootstrap" || askers[1] != "system:node:edge-7" {
		t.Errorf("asked by %v", askers)
	}
}

// Nobody approves; the agent restarts; there is still one request. Then it is
// approved.
func TestRestartWhilePending(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.auto = false
	a.kubeconfig(p.bootstrap, "first")
	for range 3 {
		m := start(t, p.config(), nil)
		eventually(t, "a request", func() bool { list, _ := a.requests(); return len(list) > 0 })
		eventually(t, "an error that says how to approve", func() bool {
			_, err := m.Client(nil)
			return err != nil && strings.Contains(err.Error(), "kubectl certificate approve node-csr-")
		})
		m.stop()
	}
	list, _ := a.requests()
	if len(list) != 1 {
		t.Fatalf("%d requests after 3 starts", len(list))
	}
	m := start(t, p.config(), nil)
	a.set(func() { a.sign(list[0]) })
	ready(t, m.Ready())
}

func TestRejectedRequestsAreMadeAnew(t *testing.T) {
	for name, reject := range map[string]func(a *authority, csr *certificatesv1.CertificateSigningRequest){
		"it was denied: Manual: no": func(_ *authority, csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "Manual", Message: "no"}}
		},
		"its signer failed": func(_ *authority, csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}
		},
		"it was removed": func(a *authority, csr *certificatesv1.CertificateSigningRequest) { delete(a.list, csr.Name) },
	} {
		t.Run(name, func(t *testing.T) {
			a, p := newAuthority(t), newPaths(t)
			a.auto = false
			a.kubeconfig(p.bootstrap, "first")
			var failures sync.Map
			cfg := p.config()
			cfg.Observer.RenewFailed = func(kind Kind, err error) { failures.Store(err.Error(), kind) }
			m := start(t, cfg, nil)
			eventually(t, "a request", func() bool { _, askers := a.requests(); return len(askers) == 1 })
			list, _ := a.requests()
			a.set(func() { reject(a, list[0]); a.auto = true })
			ready(t, m.Ready())
			if _, askers := a.requests(); len(askers) != 2 {
				t.Errorf("%d requests, want a second one with another key", len(askers))
			}
			if !strings.Contains(m.logs.String(), name) {
				t.Errorf("the log does not say why")
			}
			n := 0
			failures.Range(func(_, kind any) bool { n++; return kind == KindClient })
			if n != 1 {
				t.Errorf("%d failures observed", n)
			}
		})
	}
}

// Everything can be mended while the agent runs: a control plane that is away,
// a token that expired, a bootstrap kubeconfig that is missing.
func TestWaitsForWhatIsMissing(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.away = true
	// Only the files make it try again; the pause after a failure is longer
	// than the test waits.
	m := start(t, p.config(), nil, func(m *Manager) { m.client.retry = backoff.Policy{Base: time.Hour, Max: time.Hour} })
	says := func(want string) {
		t.Helper()
		eventually(t, "an error with "+want, func() bool {
			_, err := m.Client(nil)
			return err != nil && strings.Contains(err.Error(), want)
		})
	}
	says("bootstrap.conf does not exist: write it")
	if _, err := m.Endpoint(); err == nil || !strings.Contains(err.Error(), p.bootstrap) {
		t.Errorf("endpoint: %v", err)
	}
	a.kubeconfig(p.bootstrap, "expired")
	says("ServiceUnavailable")
	a.set(func() { a.away = false })
	a.kubeconfig(p.bootstrap, "expired too")
	says("the API server does not accept the token of bootstrap kubeconfig " + p.bootstrap +
		" (expired, revoked or of another cluster): put new credentials into that file: ")
	a.kubeconfig(p.bootstrap, "first")
	ready(t, m.Ready())
	if n := strings.Count(m.logs.String(), "does not accept"); n != 1 {
		t.Errorf("one cause was logged %d times", n)
	}
}

func TestAnotherAuthorityIsNamed(t *testing.T) {
	a, b, p := newAuthority(t), newAuthority(t), newPaths(t)
	b.kubeconfig(p.bootstrap, "first")
	text, err := os.ReadFile(p.bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	// httptest's servers share one certificate, so make its name wrong.
	text = bytes.Replace(text, []byte(b.URL), []byte(strings.Replace(a.URL, "127.0.0.1", "127.0.0.2", 1)), 1)
	if err := os.WriteFile(p.bootstrap, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", strings.Replace(a.Listener.Addr().String(), "127.0.0.1", "127.0.0.2", 1))
	if err != nil {
		t.Skip("no second loopback address here: ", err)
	}
	server := &http.Server{Handler: a.Config.Handler, TLSConfig: a.TLS, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { server.Close() })
	m := start(t, p.config(), nil)
	eventually(t, "an error about the authority", func() bool {
		_, err := m.Client(nil)
		return err != nil && strings.Contains(err.Error(), "does not fit the certificate authority or address")
	})
}

// A certificate that is refused is replaced by bootstrapping, and stays in use
// meanwhile.
func TestRevokedCertificate(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.kubeconfig(p.bootstrap, "first")
	m := start(t, p.config(), nil)
	ready(t, m.Ready())
	eventually(t, "the kubeconfig", func() bool { _, err := os.Stat(p.kubeconfig); return err == nil })
	first := m.Leaf(KindClient)
	a.set(func() { a.revoked = true })
	m.Answered(http.StatusUnauthorized)
	m.mu.Lock()
	m.refusals.since = m.refusals.since.Add(-2 * refusedFor) // as if for two minutes
	m.mu.Unlock()
	m.Answered(http.StatusUnauthorized)
	eventually(t, "another certificate", func() bool { return !m.Leaf(KindClient).Equal(first) })
	if _, askers := a.requests(); askers[1] != "bootstrap" {
		t.Errorf("asked by %v", askers)
	}
	if n := strings.Count(m.logs.String(), "refuses the client certificate"); n != 1 {
		t.Errorf("said %d times", n)
	}
	if want := "if this lasts for a minute, " + p.bootstrap + " gets another one"; !strings.Contains(m.logs.String(), want) {
		t.Errorf("what comes next is not said: %s", m.logs.String())
	}
}

// A certificate of the kubeconfig that is refused can be replaced by hand, where
// the error says, without a restart.
func TestRefusedCertificateOfTheKubeconfig(t *testing.T) {
	a, stranger, p := newAuthority(t), newAuthority(t), newPaths(t)
	a.certified(p.kubeconfig, stranger)
	cfg := p.config()
	cfg.BootstrapKubeconfig = ""
	m := start(t, cfg, nil, func(m *Manager) { m.client.retry = backoff.Policy{Base: time.Hour, Max: time.Hour} })
	first := m.Leaf(KindClient)
	eventually(t, "an error that names the file", func() bool {
		first = m.Leaf(KindClient)
		return strings.Contains(m.logs.String(), "the API server does not accept the client certificate of kubeconfig "+p.kubeconfig+
			" (expired, revoked or of another cluster): put new credentials into that file: ")
	})
	a.certified(p.kubeconfig, a)
	eventually(t, "another certificate", func() bool { return !m.Leaf(KindClient).Equal(first) })
	eventually(t, "one of the node's own", func() bool { _, err := os.Stat(m.client.store.current()); return err == nil })
}

// One refusal alone costs no certificate, however long the API server is away
// after it.
func TestOneRefusalIsNone(t *testing.T) {
	m, err := New(newPaths(t).config(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Answered(http.StatusUnauthorized)
	m.mu.Lock()
	m.refusals.since = m.refusals.since.Add(-time.Hour)
	m.mu.Unlock()
	m.Answered(0)
	m.Answered(http.StatusServiceUnavailable)
	if why := m.refused(); why != "" {
		t.Fatalf("replaces its certificate: %s", why)
	}
	m.Answered(http.StatusUnauthorized)
	if m.refused() == "" {
		t.Fatal("two refusals with an hour between say nothing")
	}
}

// The addresses are told with every heartbeat: a request that waits for approval
// must not be asked about as often.
func TestSameAddressesWakeNobody(t *testing.T) {
	cfg := newPaths(t).config()
	cfg.ServerTLSBootstrap, cfg.RotateKubeletServerCertificate = true, true
	var addresses []corev1.NodeAddress
	m, err := New(cfg, func() []corev1.NodeAddress { return addresses }, nil)
	if err != nil {
		t.Fatal(err)
	}
	woken := func() bool {
		m.AddressesChanged()
		select {
		case <-m.server.kick:
			return true
		default:
			return false
		}
	}
	first, second := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}
	for i, c := range []struct {
		addresses []corev1.NodeAddress
		want      bool
	}{
		{nil, false},
		{[]corev1.NodeAddress{first}, true},
		{[]corev1.NodeAddress{first}, false},
		{[]corev1.NodeAddress{second, first}, true},
		{[]corev1.NodeAddress{first, second}, false}, // the order is nothing
		{[]corev1.NodeAddress{second}, true},
		{nil, true},
	} {
		addresses = c.addresses
		if got := woken(); got != c.want {
			t.Errorf("%d: %v: woken %v", i, c.addresses, got)
		}
	}
}

func TestExpiredCertificateIsBootstrapped(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.kubeconfig(p.bootstrap, "first")
	a.life = -time.Minute // expired when it comes
	old := start(t, p.config(), nil)
	eventually(t, "an error about the expired certificate", func() bool {
		_, err := old.Client(nil)
		return err != nil && strings.Contains(err.Error(), "expired at")
	})
	old.stop()
	a.set(func() { a.life = time.Hour })
	m := start(t, p.config(), nil)
	ready(t, m.Ready())
}

// A file torn by a crash costs nothing while there is an older one or a
// bootstrap kubeconfig, and is kept for a look.
func TestTornCertificate(t *testing.T) {
	for _, older := range []bool{true, false} {
		a, p := newAuthority(t), newPaths(t)
		a.kubeconfig(p.bootstrap, "first")
		m := start(t, p.config(), nil)
		ready(t, m.Ready())
		eventually(t, "the kubeconfig", func() bool { _, err := os.Stat(p.kubeconfig); return err == nil })
		m.stop()
		first := m.Leaf(KindClient)
		current := filepath.Join(p.pki, "kubelet-client-current.pem")
		target, err := os.Readlink(current)
		if err != nil {
			t.Fatal(err)
		}
		if older {
			text, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(p.pki, "kubelet-client-2020-01-01-00-00-00.pem"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Truncate(target, 300); err != nil {
			t.Fatal(err)
		}
		again := start(t, p.config(), nil)
		ready(t, again.Ready())
		if same := again.Leaf(KindClient).Equal(first); same != older {
			t.Errorf("older %v: the same certificate: %v", older, same)
		}
		if _, err := os.Stat(target + ".damaged"); err != nil {
			t.Errorf("the torn file is gone: %v", err)
		}
		if _, err := kubeclient.Load(p.kubeconfig); err != nil {
			t.Errorf("the kubeconfig does not hold: %v", err)
		}
		again.stop()
	}
}

// kubeadm gives a control plane's kubelet an administrator's certificate inside
// of the kubeconfig: it is used, and replaced at once.
func TestBorrowedCertificate(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.kubeconfig(p.bootstrap, "first")
	seed := start(t, p.config(), nil)
	ready(t, seed.Ready())
	eventually(t, "the kubeconfig", func() bool { _, err := os.Stat(p.kubeconfig); return err == nil })
	seed.stop()
	inline(t, p)
	cfg := p.config()
	cfg.Dir, cfg.BootstrapKubeconfig = filepath.Join(p.dir, "pki2"), ""
	a.set(func() { a.auto = false })
	m := start(t, cfg, nil)
	ready(t, m.Ready())
	if !m.Leaf(KindClient).Equal(seed.Leaf(KindClient)) {
		t.Fatal("the kubeconfig's certificate is not in use meanwhile")
	}
	eventually(t, "a request by the borrowed certificate", func() bool {
		list, askers := a.requests()
		if len(list) < 2 {
			return false
		}
		a.set(func() {
			for _, csr := range list {
				if len(csr.Status.Certificate) == 0 {
					a.sign(csr)
				}
			}
		})
		return askers[1] == "system:node:edge-7"
	})
	eventually(t, "the node's own certificate", func() bool { return !m.Leaf(KindClient).Equal(seed.Leaf(KindClient)) })
}

// inline moves the certificate files of a kubeconfig into it.
func inline(t *testing.T, p paths) {
	t.Helper()
	text, err := os.ReadFile(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(p.pki, "kubelet-client-current.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"client-certificate", "client-key"} {
		text = bytes.Replace(text, []byte(field+": "+filepath.Join(p.pki, "kubelet-client-current.pem")), []byte(field+"-data: "+base64Of(pem)), 1)
	}
	if err := os.WriteFile(p.kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestServingCertificate(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.kubeconfig(p.bootstrap, "first")
	var mu sync.Mutex
	var addresses []corev1.NodeAddress
	cfg := p.config()
	cfg.ServerTLSBootstrap, cfg.RotateKubeletServerCertificate = true, true
	m := start(t, cfg, func() []corev1.NodeAddress {
		mu.Lock()
		defer mu.Unlock()
		return addresses
	})
	ready(t, m.Ready())
	if _, err := m.Server(nil); err == nil {
		t.Fatal("a serving certificate without addresses")
	}
	eventually(t, "an error about addresses", func() bool {
		_, err := m.Server(nil)
		return strings.Contains(err.Error(), "waiting for the node's addresses")
	})
	move := func(ip string) {
		mu.Lock()
		addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "edge-7"}, {Type: corev1.NodeInternalIP, Address: ip}}
		mu.Unlock()
		m.AddressesChanged()
	}
	move("10.0.0.1")
	ready(t, m.ServerReady())
	if err := m.Leaf(KindServer).VerifyHostname("10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if err := m.Leaf(KindServer).VerifyHostname("edge-7"); err != nil {
		t.Fatal(err)
	}
	// The address changes twice, the first time while nobody approves.
	a.set(func() { a.auto = false })
	move("10.0.0.2")
	eventually(t, "a second request", func() bool { list, _ := a.requests(); return len(list) == 3 })
	a.set(func() { a.auto = true })
	move("10.0.0.3")
	eventually(t, "the new address", func() bool { return m.Leaf(KindServer).VerifyHostname("10.0.0.3") == nil })
	if _, err := os.Stat(filepath.Join(p.pki, "kubelet-server-current.pem")); err != nil {
		t.Error(err)
	}
	if _, askers := a.requests(); askers[1] != "system:node:edge-7" {
		t.Errorf("asked by %v", askers)
	}
}

func TestSelfSigned(t *testing.T) {
	p := newPaths(t)
	cfg := Config{NodeName: "edge-7", Dir: p.pki}
	m := start(t, cfg, nil)
	ready(t, m.ServerReady())
	first, err := m.Server(nil)
	if err != nil || first.Leaf.VerifyHostname("edge-7") != nil || !strings.HasPrefix(first.Leaf.Subject.CommonName, "edge-7@") {
		t.Fatalf("%v, %v", first.Leaf.Subject, err)
	}
	m.stop()
	again := start(t, cfg, nil)
	ready(t, again.ServerReady())
	if got, _ := again.Server(nil); !got.Leaf.Equal(first.Leaf) {
		t.Fatal("made anew at each start")
	}
	again.stop()
	for name, damage := range map[string]func() error{
		"certificate torn": func() error { return os.Truncate(filepath.Join(p.pki, "kubelet.crt"), 100) },
		"key gone":         func() error { return os.Remove(filepath.Join(p.pki, "kubelet.key")) },
		"another key": func() error {
			k, err := newKey()
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(p.pki, "kubelet.key"), k.pem, 0o600)
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		m := start(t, cfg, nil)
		ready(t, m.ServerReady())
		if _, err := m.Server(nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m.stop()
	}
}

func TestCertificateFiles(t *testing.T) {
	for _, reload := range []bool{true, false} {
		p := newPaths(t)
		cfg := Config{NodeName: "edge-7", Dir: p.pki, TLSCertFile: filepath.Join(p.dir, "a.crt"), TLSPrivateKeyFile: filepath.Join(p.dir, "a.key"), ReloadKubeletServerCertificateFile: reload}
		m := start(t, cfg, nil)
		eventually(t, "an error about the missing file", func() bool {
			_, err := m.Server(nil)
			return err != nil && strings.Contains(err.Error(), "a.crt")
		})
		write := func(host string) {
			t.Helper()
			cert, key, err := makeSelfSigned(host, time.Now())
			if err == nil {
				err = writePair(cfg.TLSCertFile, cert, cfg.TLSPrivateKeyFile, key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		host := func() string {
			pair, err := m.Server(nil)
			if err != nil {
				return err.Error()
			}
			return pair.Leaf.DNSNames[0]
		}
		write("one")
		eventually(t, "the first certificate", func() bool { return host() == "one" })
		if err := os.WriteFile(cfg.TLSCertFile, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		write("two")
		if reload {
			eventually(t, "the second certificate", func() bool { return host() == "two" })
		} else if host() != "one" {
			t.Errorf("read again without reload: %s", host())
		}
		m.stop()
	}
}

// Without rotation the kubeconfig's own certificate is followed, in files and
// inside of it.
func TestKubeconfigIsFollowed(t *testing.T) {
	for _, inside := range []bool{false, true} {
		a, p := newAuthority(t), newPaths(t)
		a.kubeconfig(p.bootstrap, "first")
		seed := start(t, p.config(), nil)
		ready(t, seed.Ready())
		eventually(t, "the kubeconfig", func() bool { _, err := os.Stat(p.kubeconfig); return err == nil })
		seed.stop()
		named, err := os.ReadFile(p.kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		replace := func(notAfter time.Time) {
			pair, key := pairUntil(t, notAfter)
			if err := (store{dir: p.pki, prefix: "kubelet-client", log: slog.New(slog.DiscardHandler)}).save(pair, key, time.Now()); err != nil {
				t.Fatal(err)
			}
			if inside {
				if err := os.WriteFile(p.kubeconfig, named, 0o600); err != nil {
					t.Fatal(err)
				}
				inline(t, p)
			}
		}
		replace(time.Now().Add(-time.Minute))

		cfg := p.config()
		cfg.RotateCertificates, cfg.BootstrapKubeconfig = false, ""
		rotated := make(chan struct{}, 10)
		m := start(t, cfg, nil, func(m *Manager) { m.OnRotate(func() { rotated <- struct{}{} }) })
		eventually(t, "an error about the expired certificate", func() bool {
			_, err := m.Client(nil)
			return strings.Contains(err.Error(), "expired at") && strings.Contains(err.Error(), "replace it in "+p.kubeconfig)
		})
		if e, err := m.Endpoint(); err != nil || !e.Managed {
			t.Fatalf("%+v, %v", e, err)
		}
		replace(time.Now().Add(time.Hour))
		ready(t, m.Ready())
		<-rotated
		first := m.Leaf(KindClient)
		replace(time.Now().Add(2 * time.Hour))
		<-rotated
		if m.Leaf(KindClient).Equal(first) {
			t.Fatal("the old certificate is in use")
		}
	}
}

func TestTokenKubeconfigIsNotManaged(t *testing.T) {
	a, p := newAuthority(t), newPaths(t)
	a.kubeconfig(p.kubeconfig, "first")
	cfg := p.config()
	cfg.RotateCertificates, cfg.BootstrapKubeconfig = false, ""
	m := start(t, cfg, nil)
	ready(t, m.Ready())
	if e, err := m.Endpoint(); err != nil || e.Managed || e.REST.BearerToken != "first" {
		t.Fatalf("%+v, %v", e, err)
	}
}

func TestValidate(t *testing.T) {
	good := Config{NodeName: "edge-7", Dir: "/pki", Kubeconfig: "/k"}
	addresses := func() []corev1.NodeAddress { return nil }
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"good":             {func(*Config) {}, ""},
		"no name":          {func(c *Config) { c.NodeName = "" }, "NodeName"},
		"no dir":           {func(c *Config) { c.Dir = "" }, "Dir: must not be empty"},
		"relative":         {func(c *Config) { c.Kubeconfig = "k" }, "absolute"},
		"half a pair":      {func(c *Config) { c.TLSCertFile = "/c" }, "both or neither"},
		"bootstrap alone":  {func(c *Config) { c.BootstrapKubeconfig, c.Kubeconfig = "/b", "" }, "needs Kubeconfig"},
		"serving, no gate": {func(c *Config) { c.ServerTLSBootstrap = true }, "RotateKubeletServerCertificate"},
		"serving, no API":  {func(c *Config) { c.ServerTLSBootstrap, c.RotateKubeletServerCertificate, c.Kubeconfig = true, true, "" }, "an API server signs"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			_, err := New(cfg, addresses, nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
	good.ServerTLSBootstrap, good.RotateKubeletServerCertificate = true, true
	if _, err := New(good, nil, nil); err == nil || !strings.Contains(err.Error(), "addresses") {
		t.Fatalf("without addresses: %v", err)
	}
}
