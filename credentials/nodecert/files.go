package nodecert

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"nodekit.dev/internal/kubeclient"
)

// lookAgain is how often files are read that nothing was heard of.
const lookAgain = time.Minute

// follow calls read now, when something happened in the directories of the
// files that it returns, and each minute, until ctx ends. No files: read is not
// called again.
func (m *Manager) follow(ctx context.Context, read func() (paths []string)) error {
	var events chan fsnotify.Event
	var problems chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		m.log.Debug("certificate files are looked at each minute only", "err", err)
	} else {
		defer func() { _ = watcher.Close() }()
		events, problems = watcher.Events, watcher.Errors
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		paths := read()
		if len(paths) == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		for _, path := range paths {
			dir := filepath.Dir(path)
			if watcher == nil || slices.Contains(watcher.WatchList(), dir) {
				continue
			}
			if err := watcher.Add(dir); err != nil {
				m.log.Debug("certificate file is looked at each minute only", "file", path, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		case <-events:
		case err := <-problems:
			m.log.Debug("watching certificate files", "err", err)
		}
	}
}

// reader puts a pair in use that is read again and again, and says once what
// changed.
type reader struct {
	m       *Manager
	held    *held
	last    string // what was said last
	changed func()
}

func (r *reader) read(from string, load func() (*tls.Certificate, error)) {
	pair, err := load()
	if err != nil {
		if r.news(err.Error()) {
			r.m.log.Warn("certificate can not be used; the last good one stays in use", "kind", r.held.kind, "file", from, "err", err)
			r.held.explain(err.Error())
		}
		return
	}
	state := string(pair.Certificate[0])
	expired := !time.Now().Before(pair.Leaf.NotAfter)
	if expired {
		state += " expired"
	}
	if !r.news(state) {
		return
	}
	if expired {
		r.held.explain("replace it in " + from)
		r.m.log.Warn("certificate expired; replace it", "kind", r.held.kind, "file", from, "expires", pair.Leaf.NotAfter)
	} else {
		r.m.log.Info("certificate loaded", "kind", r.held.kind, "file", from, "expires", pair.Leaf.NotAfter)
	}
	before := r.held.pair.Load()
	r.held.set(pair)
	if before != nil && !before.Leaf.Equal(pair.Leaf) && r.changed != nil {
		r.changed()
	}
}

func (r *reader) news(state string) bool {
	news := state != r.last
	r.last = state
	return news
}

// followKubeconfig serves the certificate that the kubeconfig holds or names;
// where there is none, there is nothing to do but to find one later.
func (m *Manager) followKubeconfig(ctx context.Context) error {
	if m.cfg.Kubeconfig == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	certificate := &reader{m: m, held: m.held.client, changed: m.rotated}
	return m.follow(ctx, func() []string {
		// Where the kubeconfig names a file that is missing, it mostly is the
		// one in Dir.
		paths := []string{m.cfg.Kubeconfig, filepath.Join(m.cfg.Dir, "kubelet-client-current.pem")}
		config, err := kubeclient.Load(m.cfg.Kubeconfig)
		switch {
		case err != nil:
			certificate.read(m.cfg.Kubeconfig, func() (*tls.Certificate, error) { return nil, err })
		case hasCertificate(config):
			certificate.read(m.cfg.Kubeconfig, func() (*tls.Certificate, error) { return pairOf(config) })
			for _, path := range []string{config.CertFile, config.KeyFile} {
				if path != "" {
					paths = append(paths, path)
				}
			}
		default:
			m.held.client.open()
		}
		return paths
	})
}

// followBootstrap has the client certificate read, or tried for, again at once
// when a kubeconfig or the certificate's file changed: somebody mended it.
func (m *Manager) followBootstrap(ctx context.Context) error {
	paths := []string{m.cfg.Kubeconfig, m.client.store.current()}
	if m.cfg.BootstrapKubeconfig != "" {
		paths = append(paths, m.cfg.BootstrapKubeconfig)
	}
	var last string
	return m.follow(ctx, func() []string {
		var content string
		for _, path := range paths {
			text, err := os.ReadFile(path)
			content += fmt.Sprintln(path, err, string(text))
		}
		if content != last {
			last = content
			m.client.tryAgain()
		}
		return paths
	})
}

// followServing serves the serving certificate from files, the configured ones
// or self-signed ones in Dir.
func (m *Manager) followServing(ctx context.Context) error {
	files := &reader{m: m, held: m.held.server}
	certFile, keyFile := m.cfg.TLSCertFile, m.cfg.TLSPrivateKeyFile
	own := certFile == ""
	if own {
		certFile, keyFile = filepath.Join(m.cfg.Dir, "kubelet.crt"), filepath.Join(m.cfg.Dir, "kubelet.key")
	}
	said := ""
	return m.follow(ctx, func() []string {
		if own {
			err := m.selfSigned(certFile, keyFile, time.Now())
			if err != nil && err.Error() != said {
				said = err.Error()
				m.log.Warn("no self-signed serving certificate", "err", err)
				m.held.server.explain(err.Error())
			}
		}
		files.read(certFile, func() (*tls.Certificate, error) { return loadPair(certFile, keyFile) })
		if !own && !m.cfg.ReloadKubeletServerCertificateFile && m.held.server.pair.Load() != nil {
			return nil
		}
		return []string{certFile, keyFile}
	})
}
