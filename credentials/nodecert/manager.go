package nodecert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/clientlog"
	"nodekit.dev/internal/tasks"
)

// Manager keeps the node's certificates. Use New.
type Manager struct {
	cfg       Config
	log       *slog.Logger
	addresses func() []corev1.NodeAddress

	client *rotator // nil: the kubeconfig's own credentials
	server *rotator // nil: from files
	held   struct{ client, server *held }

	mended   sync.Once
	mu       sync.Mutex
	onRotate []func()
	refusals refusals
	wanted   *template // of the serving certificate, when addresses were last told

	madeAt time.Time // when a self-signed certificate was last made here
}

// New checks the configuration; it does no I/O. addresses are asked for the
// node's addresses when a serving certificate is needed; they may be nil
// without ServerTLSBootstrap. A nil log is silence.
func New(cfg Config, addresses func() []corev1.NodeAddress, log *slog.Logger) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("node certificates: %w", err)
	}
	if cfg.ServerTLSBootstrap && addresses == nil {
		return nil, fmt.Errorf("node certificates: ServerTLSBootstrap needs the node's addresses")
	}
	if cfg.Hostname == "" {
		cfg.Hostname = cfg.NodeName
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := &Manager{cfg: cfg, log: log, addresses: addresses}
	m.held.client, m.held.server = newHeld(KindClient), newHeld(KindServer)
	if m.rotates() {
		m.client = m.clientRotator()
	}
	if cfg.ServerTLSBootstrap {
		m.server = m.serverRotator()
	}
	return m, nil
}

// Run keeps the certificates until ctx ends, and returns its error.
func (m *Manager) Run(ctx context.Context) error {
	ctx = clientlog.Context(ctx, m.log)
	m.mend()
	group := tasks.New(ctx)
	if m.client != nil {
		group.Go("client-certificate", m.client.run)
		group.Go("kubeconfig-files", m.followBootstrap)
	} else {
		group.Go("client-certificate", m.followKubeconfig)
	}
	if m.server != nil {
		group.Go("serving-certificate", m.server.run)
	} else {
		group.Go("serving-certificate", m.followServing)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// Client is for tls.Config.GetClientCertificate. The error says why there is
// no certificate and what is being waited for.
func (m *Manager) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return m.held.client.get()
}

// Server is for tls.Config.GetCertificate. The error says why there is no
// certificate and what is being waited for.
func (m *Manager) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return m.held.server.get()
}

// Ready is closed when there is a valid client certificate for the first time;
// where the Manager gives none (Endpoint.Managed), as soon as Run knows that;
// never without Kubeconfig.
func (m *Manager) Ready() <-chan struct{} { return m.held.client.ready }

// ServerReady is closed when there is a valid serving certificate for the
// first time.
func (m *Manager) ServerReady() <-chan struct{} { return m.held.server.ready }

// Leaf is the certificate in use, for metrics and status pages; nil: none.
func (m *Manager) Leaf(kind Kind) *x509.Certificate {
	held := m.held.server
	if kind == KindClient {
		held = m.held.client
	}
	if pair := held.pair.Load(); pair != nil {
		return pair.Leaf
	}
	return nil
}

// OnRotate adds a function that is called after a new client certificate is in
// use, so that connections can log in with it. It is to be called before Run.
func (m *Manager) OnRotate(call func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onRotate = append(m.onRotate, call)
}

// AddressesChanged makes the Manager compare the serving certificate with the
// node's addresses. It may be called when they are as before, which disturbs
// nothing: a signing request that waits for approval goes on waiting. It never
// blocks.
func (m *Manager) AddressesChanged() {
	if m.server == nil {
		return
	}
	want := m.server.want()
	m.mu.Lock()
	same := want == m.wanted || want != nil && m.wanted != nil && want.equal(m.wanted)
	m.wanted = want
	m.mu.Unlock()
	if !same {
		m.server.wakeUp()
	}
}

// Answered tells the HTTP status of each answer of the API server. A client
// certificate that is refused (401) again after a minute of refusals, with no
// other answer between, is replaced by bootstrapping where there is a
// BootstrapKubeconfig, and stays in use until then. It never blocks.
func (m *Manager) Answered(status int) {
	m.mu.Lock()
	before := m.refusals
	m.refusals = before.after(status, time.Now())
	after := m.refusals
	m.mu.Unlock()
	if before.since.IsZero() && !after.since.IsZero() {
		next := "put a good one there, or give a bootstrap kubeconfig, which gets one"
		if m.cfg.BootstrapKubeconfig != "" {
			next = "if this lasts for a minute, " + m.cfg.BootstrapKubeconfig + " gets another one"
		}
		m.log.Warn("the API server refuses the client certificate (401 Unauthorized): it expired, was revoked, or is of another cluster", "file", m.cfg.Kubeconfig, "next", next)
	}
	if m.client != nil && after.told && !before.told {
		m.client.wakeUp()
	}
}

func (m *Manager) refused() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.BootstrapKubeconfig == "" || !m.refusals.told {
		return ""
	}
	return "the API server refuses it"
}

func (m *Manager) rotated() {
	m.mu.Lock()
	m.refusals = refusals{}
	calls := m.onRotate
	m.mu.Unlock()
	for _, call := range calls {
		call()
	}
}
