package apicache

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"
)

func TestKeyTypes(t *testing.T) {
	for kind, want := range map[string]string{
		"RSA3072": "*rsa.PrivateKey", "ECDSAP256": "*ecdsa.PrivateKey", "ECDSAP384": "*ecdsa.PrivateKey",
		"ECDSAP521": "*ecdsa.PrivateKey", "ED25519": "ed25519.PrivateKey",
	} {
		keyPEM, proof, err := keyAndProof(kind)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		block, _ := pem.Decode(keyPEM)
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if got := fmt.Sprintf("%T", key); err != nil || got != want {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
		if csr, err := x509.ParseCertificateRequest(proof); err != nil || csr.CheckSignature() != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
