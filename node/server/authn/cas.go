package authn

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// CAConfig names the authorities that sign clients' certificates.
type CAConfig struct {
	// File holds them as PEM. Required.
	File string
	// Reload takes a change of the file over without a restart.
	Reload bool
	// Observe is told how long each client certificate is still good for (less
	// than zero: not any more); nil: nobody is.
	Observe func(remaining time.Duration)
}

// ClientCAs holds the authorities in effect. Safe for concurrent use; use
// NewClientCAs.
type ClientCAs struct {
	cfg     CAConfig
	log     *slog.Logger
	current atomic.Pointer[bundle]
}

// bundle is one content of the file.
type bundle struct {
	pem  []byte
	pool *x509.CertPool
}

// lookAgain is when the file is read without an event: file systems without
// events exist, and events get lost.
const lookAgain = time.Minute

// NewClientCAs checks the configuration. The file is read by Load.
func NewClientCAs(cfg CAConfig, log *slog.Logger) (*ClientCAs, error) {
	if !filepath.IsAbs(cfg.File) {
		return nil, fmt.Errorf("authn: client CA file %q: must be an absolute path", cfg.File)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &ClientCAs{cfg: cfg, log: log}, nil
}

// Pool is what is in effect; nil before the file was read once. Nobody may
// change it.
func (c *ClientCAs) Pool() *x509.CertPool {
	if b := c.current.Load(); b != nil {
		return b.pool
	}
	return nil
}

// Load reads the file now. What was in effect stays where it can not be read.
func (c *ClientCAs) Load() error {
	data, err := os.ReadFile(c.cfg.File)
	if err != nil {
		return fmt.Errorf("authn: unable to load client CA file %s: %w", c.cfg.File, err)
	}
	if before := c.current.Load(); before != nil && bytes.Equal(before.pem, data) {
		return nil
	}
	pool, err := poolOf(data)
	if err != nil {
		return fmt.Errorf("authn: unable to load client CA file %s: %w", c.cfg.File, err)
	}
	c.current.Store(&bundle{data, pool})
	c.log.Info("Loaded a new CA Bundle and Verifier", "file", c.cfg.File)
	return nil
}

// poolOf refuses a file with anything in it that is no certificate: half a
// bundle would lock out whoever the other half vouches for.
func poolOf(data []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		pool.AddCert(cert)
		found = true
	}
	if !found {
		return nil, errors.New("data does not contain any valid RSA or ECDSA certificates")
	}
	return pool, nil
}

// Run reads the file and takes changes over until ctx ends. A file that can
// not be read is read again at its next change and every minute.
func (c *ClientCAs) Run(ctx context.Context) error {
	var events chan fsnotify.Event
	var lost chan error
	watch, err := fsnotify.NewWatcher()
	if err == nil {
		defer func() { _ = watch.Close() }() // nothing is lost with it
		events, lost = watch.Events, watch.Errors
		// The directory: files are replaced by a rename, and volumes of
		// Kubernetes swap a symlink beside the file.
		err = watch.Add(filepath.Dir(c.cfg.File))
	}
	if err != nil {
		c.log.Warn("the client CA file is looked at once a minute, since it can not be watched", "file", c.cfg.File, "err", err)
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		c.look()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-events:
		case <-lost: //nolint:errcheck // events were lost; looking again is what there is to do
		}
	}
}

// look reads the file where there is something to learn.
func (c *ClientCAs) look() {
	if c.Pool() != nil && !c.cfg.Reload {
		return
	}
	if err := c.Load(); err != nil {
		c.log.Warn("clients with a certificate are judged by the authorities read before", "err", err)
	}
}
