package nodecert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"nodekit.dev/internal/atomicfile"
)

// key is a private key and what is made from it.
type key struct {
	private *ecdsa.PrivateKey
	pem     []byte
	public  []byte // DER
}

func newKey() (*key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, err
	}
	return keyOf(private, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func keyOf(private *ecdsa.PrivateKey, text []byte) (*key, error) {
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	return &key{private: private, pem: text, public: public}, nil
}

func parseKey(text []byte) (*key, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "EC PRIVATE KEY" {
		return nil, errors.New("it is no EC PRIVATE KEY")
	}
	private, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return keyOf(private, text)
}

// keptKey returns the key of a request that was made before a restart, or
// makes one and stores it before anything is asked for with it. A kept key
// that can not be used is replaced.
func keptKey(path string) (*key, error) {
	if text, err := os.ReadFile(path); err == nil {
		if k, err := parseKey(text); err == nil {
			return k, nil
		}
	}
	k, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make a private key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("store a private key: %w", err)
	}
	if err := atomicfile.Write(path, k.pem, 0o600); err != nil {
		return nil, fmt.Errorf("store a private key: %w", err)
	}
	return k, nil
}

// dropKey is for a key that has its certificate or will get none.
func dropKey(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a private key: %w", err)
	}
	return nil
}

// requestName is the same for the same key and template: an agent that asks
// again after a restart finds what it asked for.
func requestName(k *key, t *template) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%x %q %q %q %v", k.public, t.signer, t.node, t.names, t.ips)
	return "node-csr-" + hex.EncodeToString(sum.Sum(nil))
}

// signingRequest is the PEM that a signer is given.
func signingRequest(k *key, t *template) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, t.request(), k.private)
	if err != nil {
		return nil, fmt.Errorf("make a signing request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}
