package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/asn1"

	"nodekit.dev/node/server"
)

// credentialID is where a user's Extra tells which certificate it was.
const credentialID = "authentication.kubernetes.io/credential-id"

// X509 knows clients by their certificate: the common name is the user, the
// organizations are the groups.
func X509(cas *ClientCAs) server.Authenticator { return certificates{cas} }

type certificates struct{ cas *ClientCAs }

func (c certificates) Authenticate(r *http.Request) (server.User, bool, error) {
	pool := c.cas.Pool()
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || pool == nil {
		return server.User{}, false, nil
	}
	now, leaf := time.Now(), r.TLS.PeerCertificates[0]
	if c.cas.cfg.Observe != nil {
		c.cas.cfg.Observe(leaf.NotAfter.Sub(now))
	}
	return verify(r.TLS.PeerCertificates, pool, now)
}

// verify holds what a client sent against the authorities. Certificates after
// the first are those in between.
func verify(sent []*x509.Certificate, roots *x509.CertPool, now time.Time) (server.User, bool, error) {
	between := x509.NewCertPool()
	for _, c := range sent[1:] {
		between.AddCert(c)
	}
	_, err := sent[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return server.User{}, false, fmt.Errorf("verifying certificate SN=%d failed: %w", sent[0].SerialNumber, err)
	}
	return userOf(sent[0])
}

// userOf reads the subject. A certificate without a common name is nobody's.
func userOf(c *x509.Certificate) (server.User, bool, error) {
	if c.Subject.CommonName == "" {
		return server.User{}, false, nil
	}
	uid, err := uidOf(c)
	if err != nil {
		return server.User{}, false, err
	}
	print := sha256.Sum256(c.Raw)
	return server.User{
		Name: c.Subject.CommonName, UID: uid, Groups: c.Subject.Organization,
		Extra: map[string][]string{credentialID: {"X509SHA256=" + hex.EncodeToString(print[:])}},
	}, true, nil
}

// uidOf reads the one UID that a subject may have.
func uidOf(c *x509.Certificate) (string, error) {
	uid, oid, found := "", asn1.X509UID(), false
	for _, name := range c.Subject.Names {
		if !name.Type.Equal(oid) {
			continue
		}
		text, isText := name.Value.(string)
		switch {
		case !isText:
			return "", errors.New("the UID in the certificate is no text")
		case found:
			return "", errors.New("expected 1 UID in the certificate, but there are more")
		case text == "":
			return "", errors.New("the UID in the certificate is empty")
		}
		uid, found = text, true
	}
	return uid, nil
}
