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

// who is what logs in, and where it is to be found.
func (s source) who() string {
	kind := ""
	switch {
	case s.config.BearerToken != "" || s.config.BearerTokenFile != "":
		kind = "the token of "
	case hasCertificate(s.config):
		kind = "the client certificate of "
	}
	if s.bootstrap {
		return kind + "bootstrap kubeconfig " + s.path
	}
	return kind + "kubeconfig " + s.path
}

// wrong is what can be told without the API server about credentials that it
// does not accept; empty: nothing.
func (s source) wrong(now time.Time) string {
	pair, err := pairOf(s.config)
	if err != nil || pair == nil || now.Before(pair.Leaf.NotAfter) {
		return ""
	}
	return "it expired at " + pair.Leaf.NotAfter.Format(time.RFC3339)
}

// open opens a session with what the kubeconfig holds.
func (s source) open(now time.Time) (*session, error) {
	session, err := open(s.config, nil, s.who())
	if err != nil {
		return nil, err
	}
	session.wrong = s.wrong(now)
	return session, nil
}

// whose names the file that holds the client certificate in use.
func (m *Manager) whose() string {
	from := "kubeconfig " + m.cfg.Kubeconfig
	if m.client != nil && exists(m.client.store.current()) {
		from = m.client.store.current()
	}
	return "the client certificate of " + from
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
		return source{path: m.cfg.BootstrapKubeconfig, config: config, bootstrap: true}.open(now)
	}
	from, err := m.source(now)
	if err != nil {
		return nil, err
	}
	if current != nil && now.Before(current.Leaf.NotAfter) {
		return open(from.config, current, m.whose())
	}
	return from.open(now)
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
