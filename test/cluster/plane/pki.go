package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// Cert and Key are PEM.
	Cert, Key []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Identity is whom a certificate is about. A client has a User, a server has
// Names and IPs; one may be both.
type Identity struct {
	User   string
	Groups []string
	Names  []string
	IPs    []netip.Addr
	// From and Until bound its life; default: an hour ago to a day from now.
	From, Until time.Time
}

// NewAuthority makes a certificate authority of its own.
func NewAuthority(name string) (*Authority, error) {
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(240 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	a := &Authority{}
	var err error
	if a.key, a.Key, err = newKey(); err != nil {
		return nil, err
	}
	a.cert, a.Cert, err = sign(template, template, &a.key.PublicKey, a.key)
	return a, err
}

// Issue makes a key and a certificate, both PEM.
func (a *Authority) Issue(id Identity) (cert, key []byte, err error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.User, Organization: id.Groups},
		NotBefore:    id.From,
		NotAfter:     id.Until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		DNSNames:     id.Names,
	}
	if id.From.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if id.Until.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if len(id.Names)+len(id.IPs) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if id.User != "" {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, ip := range id.IPs {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	own, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	_, cert, err = sign(template, a.cert, &own.PublicKey, a.key)
	return cert, key, err
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func sign(template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) (*x509.Certificate, []byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %q: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// publicKey is the PEM of a private key's other half.
func publicKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
