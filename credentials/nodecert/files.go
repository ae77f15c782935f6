package nodecert

import (
	"context"
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

// reader reads a pair from files again and again, and says what changed.
type reader struct {
	m       *Manager
	held    *held
	last    string // what was read last: the certificate or the error
	changed func()
}

func (r *reader) read(certFile, keyFile string) {
	pair, err := loadPair(certFile, keyFile)
	if err != nil {
		if err.Error() != r.last {
			r.m.log.Warn("certificate files can not be used; the last good ones stay in use", "kind", r.held.kind, "err", err)
			r.held.explain(err.Error())
		}
		r.last = err.Error()
		return
	}
	if r.last == string(pair.Certificate[0]) {
		return
	}
	r.last = string(pair.Certificate[0])
	before := r.held.pair.Load()
	r.held.set(pair)
	r.m.log.Info("certificate in use", "kind", r.held.kind, "file", certFile, "expires", pair.Leaf.NotAfter)
	if before != nil && r.changed != nil {
		r.changed()
	}
}

// followKubeconfig serves the certificate files that the kubeconfig names;
// where it names none there is nothing to do.
func (m *Manager) followKubeconfig(ctx context.Context) error {
	files := &reader{m: m, held: m.held.client, changed: m.rotated}
	if m.cfg.Kubeconfig == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.follow(ctx, func() []string {
		config, err := kubeclient.Load(m.cfg.Kubeconfig)
		if err != nil {
			if err.Error() != files.last {
				m.log.Warn("kubeconfig can not be used", "err", err)
				m.held.client.explain(err.Error())
			}
			files.last = err.Error()
			return []string{m.cfg.Kubeconfig}
		}
		if config.CertFile == "" {
			m.held.client.open()
			return []string{m.cfg.Kubeconfig}
		}
		files.read(config.CertFile, config.KeyFile)
		return []string{m.cfg.Kubeconfig, config.CertFile, config.KeyFile}
	})
}

// followBootstrap has the client certificate tried for again at once when a
// kubeconfig changed: somebody mended it.
func (m *Manager) followBootstrap(ctx context.Context) error {
	paths := []string{m.cfg.Kubeconfig}
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
	return m.follow(ctx, func() []string {
		if own {
			if err := m.selfSigned(certFile, keyFile, time.Now()); err != nil {
				m.log.Warn("no self-signed serving certificate", "err", err)
				m.held.server.explain(err.Error())
			}
		}
		files.read(certFile, keyFile)
		if !own && !m.cfg.ReloadKubeletServerCertificateFile && m.held.server.pair.Load() != nil {
			return nil
		}
		return []string{certFile, keyFile}
	})
}
