package nodecert

import (
	"context"
	"crypto/tls"
	"time"

	"nodekit.dev/internal/backoff"
)

// retryPolicy is how long to wait after failures in a row.
func retryPolicy() backoff.Policy {
	return backoff.Policy{Base: 2 * time.Second, Max: 30 * time.Second}
}

// clientRotator keeps the certificate for the API server.
func (m *Manager) clientRotator() *rotator {
	asks := clientTemplate(m.cfg.NodeName)
	return &rotator{
		kind: KindClient, held: m.held.client, observe: m.cfg.Observer, log: m.log,
		store:   store{dir: m.cfg.Dir, prefix: "kubelet-client", log: m.log},
		byAge:   m.cfg.RotateCertificates,
		retry:   retryPolicy(),
		kick:    make(chan struct{}, 1),
		initial: m.fromKubeconfig,
		want:    func() *template { return asks },
		replace: m.refused,
		connect: func(_ context.Context, current *tls.Certificate) (*session, error) {
			return m.openClient(current, time.Now())
		},
		used:   m.rotated,
		finish: func() error { return m.writeKubeconfig(time.Now()) },
	}
}

// fromKubeconfig is the certificate that the kubeconfig brings along. One that
// is written in it, as kubeadm does on control planes, is only borrowed. It may
// have expired.
func (m *Manager) fromKubeconfig(now time.Time) (*tls.Certificate, string) {
	source, err := m.source(now)
	if err != nil || source.bootstrap {
		return nil, "" // connect reports it
	}
	pair, err := pairOf(source.config)
	if err != nil || pair == nil {
		return nil, ""
	}
	if len(source.config.CertData) > 0 && m.cfg.RotateCertificates {
		return pair, "it came with the kubeconfig"
	}
	return pair, ""
}

// serverRotator keeps the certificate of the node's own server, asked for as
// the node itself.
func (m *Manager) serverRotator() *rotator {
	return &rotator{
		kind: KindServer, held: m.held.server, observe: m.cfg.Observer, log: m.log,
		store: store{dir: m.cfg.Dir, prefix: "kubelet-server", log: m.log},
		byAge: true,
		retry: retryPolicy(),
		kick:  make(chan struct{}, 1),
		initial: func(time.Time) (*tls.Certificate, string) {
			if m.cfg.TLSCertFile == "" {
				return nil, ""
			}
			pair, err := loadPair(m.cfg.TLSCertFile, m.cfg.TLSPrivateKeyFile)
			if err != nil {
				m.log.Warn("tlsCertFile can not be used; asking for a certificate", "err", err)
				return nil, ""
			}
			return pair, ""
		},
		want: func() *template {
			return serverTemplate(m.cfg.NodeName, m.addresses(), m.cfg.AllowDNSOnlyNodeCSR)
		},
		replace: func() string { return "" },
		connect: m.openAsNode,
		used:    func() {},
		finish:  func() error { return nil },
	}
}

// openAsNode opens a session as the node, once it can log in.
func (m *Manager) openAsNode(ctx context.Context, _ *tls.Certificate) (*session, error) {
	select {
	case <-m.Ready():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	endpoint, err := m.Endpoint()
	if err != nil {
		return nil, err
	}
	if !endpoint.Managed {
		return open(endpoint.REST, nil, source{path: m.cfg.Kubeconfig, config: endpoint.REST}.who())
	}
	current, err := m.Client(nil)
	if err != nil {
		return nil, err
	}
	return open(endpoint.REST, current, m.whose())
}
