package nodecert

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nodekit.dev/internal/atomicfile"
)

const (
	selfSignedLife = 365 * 24 * time.Hour
	// remakeBefore is when a self-signed certificate is made anew.
	remakeBefore = 30 * 24 * time.Hour
)

// selfSignedName is the stock form: a self-signed certificate can be told from
// one that somebody chose.
func selfSignedName(host string, now time.Time) string {
	return fmt.Sprintf("%s@%d", host, now.Unix())
}

// remake says that a certificate is self-signed by an agent and near its end,
// or for a name that the host does not have any more.
func remake(leaf *x509.Certificate, host string, now time.Time) bool {
	name, _, made := strings.Cut(leaf.Subject.CommonName, "@")
	return made && (name != host || now.Add(remakeBefore).After(leaf.NotAfter))
}

// selfSigned makes a self-signed pair where there is none, and a new one when
// the one that an agent made expires or is damaged. Files that somebody else
// put there stay. It makes at most one a minute: whoever else writes these files
// would otherwise make both write for ever.
func (m *Manager) selfSigned(certFile, keyFile string, now time.Time) error {
	pair, err := loadPair(certFile, keyFile)
	switch {
	case err == nil && !remake(pair.Leaf, m.cfg.Hostname, now):
		return nil
	case err != nil && !errors.Is(err, os.ErrNotExist) && !madeHere(certFile):
		return err
	}
	if !m.madeAt.IsZero() && now.Sub(m.madeAt) < lookAgain {
		return fmt.Errorf("%s was changed by somebody else just after this agent made it; is it another agent's, too? Give each a --cert-dir of its own", certFile)
	}
	m.madeAt = now
	certPEM, keyPEM, err := makeSelfSigned(m.cfg.Hostname, now)
	if err != nil {
		return fmt.Errorf("make a self-signed certificate: %w", err)
	}
	if err := writePair(certFile, certPEM, keyFile, keyPEM); err != nil {
		return err
	}
	m.log.Info("made a self-signed serving certificate", "file", certFile, "host", m.cfg.Hostname)
	return nil
}

// madeHere says that a file that does not fit its key holds a self-signed
// certificate of an agent, or nothing that anybody could want back.
func madeHere(certFile string) bool {
	text, err := os.ReadFile(certFile)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return true
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	return err != nil || strings.Contains(leaf.Subject.CommonName, "@")
}

func makeSelfSigned(host string, now time.Time) (certPEM, keyPEM []byte, err error) {
	k, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	cert := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: selfSignedName(host, now)},
		NotBefore:    now.Add(-time.Hour), // for clients whose clocks are behind
		NotAfter:     now.Add(selfSignedLife),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		cert.IPAddresses = []net.IP{ip}
	} else {
		cert.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, k.private.Public(), k.private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), k.pem, nil
}

// writePair writes the key first: a certificate without its key is found and
// made anew, and there is no moment with a key that does not fit for long.
func writePair(certFile string, certPEM []byte, keyFile string, keyPEM []byte) error {
	if err := os.MkdirAll(filepath.Dir(certFile), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(keyFile, keyPEM, 0o600); err != nil {
		return err
	}
	return atomicfile.Write(certFile, certPEM, 0o644)
}
