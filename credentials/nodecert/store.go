package nodecert

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"nodekit.dev/internal/atomicfile"
)

// store is certificate and key pairs in one directory: PREFIX-current.pem is a
// link to the pair in use, PREFIX-DATE.pem. For one goroutine at a time.
type store struct {
	dir    string
	prefix string // "kubelet-client"
	log    *slog.Logger
}

// dateFormat is in the names of pairs.
const dateFormat = "2006-01-02-15-04-05"

func (s store) path(what string) string { return filepath.Join(s.dir, s.prefix+"-"+what+".pem") }
func (s store) current() string         { return s.path("current") }
func (s store) keyPath() string         { return filepath.Join(s.dir, s.prefix+".key.tmp") }

// load returns the pair in use, or else the newest one that is good and not
// expired; nil: there is none. Files that are damaged are set aside.
func (s store) load(now time.Time) *tls.Certificate {
	if pair := s.loadOne(s.current()); pair != nil {
		return pair
	}
	// PREFIX-updated.pem is left where the stock kubelet was killed between
	// its two renames.
	candidates := append([]string{s.path("updated")}, s.dated()...)
	for _, path := range candidates {
		pair := s.loadOne(path)
		if pair == nil || !now.Before(pair.Leaf.NotAfter) {
			continue
		}
		s.log.Warn("using an older certificate", "file", path, "expires", pair.Leaf.NotAfter)
		target, err := filepath.EvalSymlinks(path)
		if err == nil {
			err = s.link(target)
		}
		if err != nil {
			s.log.Warn("could not link the certificate in use", "file", path, "err", err)
		}
		return pair
	}
	return nil
}

// dated lists the pairs, newest first.
func (s store) dated() []string {
	list, _ := filepath.Glob(filepath.Join(s.dir, s.prefix+"-[0-9]*.pem"))
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

func (s store) loadOne(path string) *tls.Certificate {
	pair, err := loadPair(path, path)
	switch {
	case err == nil:
		return pair
	case errors.Is(err, os.ErrNotExist):
		return nil
	}
	var gone *os.PathError
	if errors.As(err, &gone) { // not readable: nothing is known about its content
		s.log.Warn("certificate can not be read; let the agent's user read it", "file", path, "err", err)
		return nil
	}
	s.setAside(path, err)
	return nil
}

func (s store) setAside(path string, why error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		target = path
	}
	kept, err := atomicfile.SetAside(target, "damaged")
	if err != nil {
		s.log.Warn("certificate is damaged and could not be set aside", "file", target, "err", errors.Join(why, err))
		return
	}
	s.log.Warn("certificate is damaged; it was set aside", "file", target, "kept", kept, "err", why)
}

// save stores a pair and links it as the one in use. After it returned nil,
// the pair survives a power failure.
func (s store) save(pair *tls.Certificate, keyPEM []byte, now time.Time) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("store a certificate in %s: %w", s.dir, err)
	}
	var data []byte
	for _, der := range pair.Certificate {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	path := s.path(now.UTC().Format(dateFormat))
	if err := atomicfile.Write(path, append(data, keyPEM...), 0o600); err != nil {
		return fmt.Errorf("store a certificate: %w", err)
	}
	if err := s.link(path); err != nil {
		return err
	}
	s.removeExpired(now, path)
	return nil
}

// link makes PREFIX-current.pem point to a pair. It is never missing between.
func (s store) link(target string) error {
	updated := s.path("updated")
	if err := os.Remove(updated); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("link %s: %w", s.current(), err)
	}
	if err := os.Symlink(target, updated); err != nil {
		return fmt.Errorf("link %s: %w", s.current(), err)
	}
	if err := os.Rename(updated, s.current()); err != nil {
		return fmt.Errorf("link %s: %w", s.current(), err)
	}
	return atomicfile.SyncDir(s.dir)
}

// removeExpired keeps the directory from growing by a pair with each rotation.
func (s store) removeExpired(now time.Time, but string) {
	for _, path := range s.dated() {
		if path == but { // whatever the clock says
			continue
		}
		if pair, err := loadPair(path, path); err == nil && now.After(pair.Leaf.NotAfter) {
			if err := os.Remove(path); err != nil {
				s.log.Warn("could not remove an expired certificate", "file", path, "err", err)
			}
		}
	}
}

// loadPair reads a certificate and its key. The error fits os.ErrNotExist
// where one of the files is missing.
func loadPair(certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return pair, nil
}

func parsePair(certPEM, keyPEM []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	if pair.Leaf == nil { // only with GODEBUG=x509keypairleaf=0
		pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	return &pair, err
}
