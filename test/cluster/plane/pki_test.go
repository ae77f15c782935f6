package plane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"testing"
	"time"
)

func TestIssue(t *testing.T) {
	ours, theirs := authority(t, "ours"), authority(t, "theirs")
	tests := map[string]struct {
		by    *Authority
		id    Identity
		usage x509.ExtKeyUsage
		name  string // to verify a server by
		good  bool
	}{
		"client":            {by: ours, id: Identity{User: "system:node:a", Groups: []string{"system:nodes"}}, usage: x509.ExtKeyUsageClientAuth, good: true},
		"server by name":    {by: ours, id: Identity{Names: []string{"localhost"}}, usage: x509.ExtKeyUsageServerAuth, name: "localhost", good: true},
		"server by address": {by: ours, id: Identity{IPs: []netip.Addr{netip.MustParseAddr("10.1.2.3")}}, usage: x509.ExtKeyUsageServerAuth, name: "10.1.2.3", good: true},
		"server as client":  {by: ours, id: Identity{Names: []string{"localhost"}}, usage: x509.ExtKeyUsageClientAuth},
		"of a stranger":     {by: theirs, id: Identity{User: "system:node:a"}, usage: x509.ExtKeyUsageClientAuth},
		"expired":           {by: ours, id: Identity{User: "a", Until: time.Now().Add(-time.Minute)}, usage: x509.ExtKeyUsageClientAuth},
		"not valid yet":     {by: ours, id: Identity{User: "a", From: time.Now().Add(time.Minute)}, usage: x509.ExtKeyUsageClientAuth},
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ours.Cert)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			certPEM, keyPEM, err := test.by.Issue(test.id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(certPEM)
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.name, KeyUsages: []x509.ExtKeyUsage{test.usage}})
			if (err == nil) != test.good {
				t.Errorf("verify: %v", err)
			}
			if cert.Subject.CommonName != test.id.User || len(cert.Subject.Organization) != len(test.id.Groups) {
				t.Errorf("it is of %v", cert.Subject)
			}
		})
	}
}

func authority(t *testing.T, name string) *Authority {
	t.Helper()
	a, err := NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
