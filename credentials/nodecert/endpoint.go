package nodecert

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient"
)

// Endpoint is where the API server is and how to log in.
type Endpoint struct {
	// REST is the API server. Nil: there is no Kubeconfig.
	REST *rest.Config
	// Managed says that the Manager gives the client certificate. Otherwise
	// the credentials in REST are all there is (a token, an exec plugin).
	Managed bool
}

// Endpoint reads Kubeconfig, or BootstrapKubeconfig where that is missing or
// holds no valid certificate. It may be called before Run and at any time. The
// error says which file to mend.
func (m *Manager) Endpoint() (Endpoint, error) {
	if m.cfg.Kubeconfig == "" {
		return Endpoint{}, nil
	}
	m.mend()
	from, err := m.source(time.Now())
	if err != nil {
		return Endpoint{}, err
	}
	if from.bootstrap {
		return Endpoint{REST: rest.AnonymousClientConfig(from.config), Managed: true}, nil
	}
	return Endpoint{REST: from.config, Managed: m.rotates() || hasCertificate(from.config)}, nil
}

// mend sets damaged certificates aside, once, before anything depends on the
// kubeconfig, which mostly names one of them.
func (m *Manager) mend() {
	m.mended.Do(func() {
		if m.client != nil {
			m.client.store.load(time.Now())
		}
	})
}

// rotates says that the client certificate is had by signing requests.
func (m *Manager) rotates() bool {
	return m.cfg.RotateCertificates || m.cfg.BootstrapKubeconfig != ""
}

// source is the kubeconfig that holds at the moment.
type source struct {
	path      string
	config    *rest.Config
	bootstrap bool
}

func (s source) who() string {
	if s.bootstrap {
		return "bootstrap kubeconfig " + s.path
	}
	return "kubeconfig " + s.path
}

func (m *Manager) source(now time.Time) (source, error) {
	config, err := kubeclient.Load(m.cfg.Kubeconfig)
	if m.cfg.BootstrapKubeconfig == "" {
		return source{path: m.cfg.Kubeconfig, config: config}, err
	}
	switch {
	case err == nil:
		err = validCertificate(config, now)
	case !exists(m.cfg.Kubeconfig): // as before the first start: the bootstrap is what matters
		err = fmt.Errorf("kubeconfig %s was not written yet", m.cfg.Kubeconfig)
	}
	if err == nil {
		return source{path: m.cfg.Kubeconfig, config: config}, nil
	}
	bootstrap, bootstrapErr := kubeclient.LoadBootstrap(m.cfg.BootstrapKubeconfig)
	if bootstrapErr != nil {
		return source{}, fmt.Errorf("no way to reach the API server: %w; and the node's own credentials do not do: %w", bootstrapErr, err)
	}
	return source{path: m.cfg.BootstrapKubeconfig, config: bootstrap, bootstrap: true}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// validCertificate says why the client certificate of a kubeconfig will not do.
func validCertificate(config *rest.Config, now time.Time) error {
	pair, err := pairOf(config)
	switch {
	case err != nil:
		return err
	case pair == nil:
		return errors.New("the kubeconfig has no client certificate")
	case !now.Before(pair.Leaf.NotAfter):
		return fmt.Errorf("the client certificate of the kubeconfig expired at %s", pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// pairOf reads the client certificate of a kubeconfig; nil: it has none.
func pairOf(config *rest.Config) (*tls.Certificate, error) {
	switch {
	case len(config.CertData) > 0:
		return parsePair(config.CertData, config.KeyData)
	case config.CertFile != "":
		return loadPair(config.CertFile, config.KeyFile)
	}
	return nil, nil
}

func hasCertificate(config *rest.Config) bool {
	return len(config.CertData) > 0 || config.CertFile != ""
}

// openClient opens a session for signing requests: as the node itself where it
// has a certificate that is accepted, else with what the kubeconfigs hold.
func (m *Manager) openClient(current *tls.Certificate, now time.Time) (*session, error) {
	if m.refused() != "" { // then there is a bootstrap kubeconfig
		config, err := kubeclient.LoadBootstrap(m.cfg.BootstrapKubeconfig)
		if err != nil {
			return nil, err
		}
		return open(config, nil, "bootstrap kubeconfig "+m.cfg.BootstrapKubeconfig)
	}
	from, err := m.source(now)
	if err != nil {
		return nil, err
	}
	if current != nil && now.Before(current.Leaf.NotAfter) {
		return open(from.config, current, "the client certificate of "+current.Leaf.Subject.CommonName)
	}
	return open(from.config, nil, from.who())
}

// writeKubeconfig makes the kubeconfig point at the certificate that was just
// stored, where it does not lead to a valid one already.
func (m *Manager) writeKubeconfig(now time.Time) error {
	from, err := m.source(now)
	if err != nil || !from.bootstrap {
		return err
	}
	if err := kubeclient.Write(m.cfg.Kubeconfig, from.config, m.client.store.current()); err != nil {
		return err
	}
	m.log.Info("wrote the kubeconfig of the node", "file", m.cfg.Kubeconfig, "server", from.config.Host)
	return nil
}
