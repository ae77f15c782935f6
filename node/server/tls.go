package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TLSConfig is how HTTPS is spoken.
type TLSConfig struct {
	// Certificate gives the serving certificate for each connection, so that a
	// new one needs no restart. Required with an address for HTTPS.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCAs gives the authorities that clients are told about when they are
	// asked for a certificate; what they send is checked by an authenticator.
	// Nil: clients are asked for none.
	ClientCAs func() *x509.CertPool
	// MinVersion is the oldest version spoken; 0 is TLS 1.2.
	MinVersion uint16
	// CipherSuites for TLS 1.2, one that HTTP/2 demands among them; nil: those of
	// Go.
	CipherSuites []uint16
	// CurvePreferences; nil: those of Go.
	CurvePreferences []tls.CurveID
}

func (c TLSConfig) build() (*tls.Config, error) {
	if c.Certificate == nil {
		return nil, nil
	}
	cfg := &tls.Config{
		MinVersion: c.MinVersion, CipherSuites: c.CipherSuites, CurvePreferences: c.CurvePreferences,
		GetCertificate: c.Certificate,
	}
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	if cfg.MinVersion < tls.VersionTLS13 && len(c.CipherSuites) > 0 && !slices.ContainsFunc(c.CipherSuites, forHTTP2) {
		return nil, errors.New("server: TLS: tlsCipherSuites: HTTP/2 can not be spoken without one of " +
			"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 and TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: add it, or set tlsMinVersion to VersionTLS13")
	}
	if c.ClientCAs == nil {
		return cfg, nil
	}
	cfg.ClientAuth = tls.RequestClientCert
	// net/http adds this to what it clones; a config per client needs it said.
	cfg.NextProtos = []string{"h2", "http/1.1"}
	perClient := cfg.Clone()
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := perClient.Clone()
		now.ClientCAs = c.ClientCAs()
		return now, nil
	}
	return cfg, nil
}

// forHTTP2 says that the suite is one of those that HTTP/2 demands; net/http
// does not serve without, and would say so only once the agent runs.
func forHTTP2(id uint16) bool {
	return id == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 || id == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
}

// TLSVersion reads a version as KubeletConfiguration spells it: VersionTLS10
// to VersionTLS13. Empty is TLS 1.2.
func TLSVersion(name string) (uint16, error) {
	versions := map[string]uint16{
		"": tls.VersionTLS12, "VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11,
		"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
	}
	if v, ok := versions[name]; ok {
		return v, nil
	}
	names := slices.Sorted(maps.Keys(versions))[1:]
	return 0, fmt.Errorf("unknown tls version %q: use one of %s", name, strings.Join(names, ", "))
}

// CipherSuites reads the names of cipher suites. Insecure are those of them
// that Go calls insecure.
func CipherSuites(names []string) (ids []uint16, insecure []string, err error) {
	var errs []error
	for _, name := range names {
		id, weak, ok := suite(name)
		if !ok {
			errs = append(errs, fmt.Errorf("Cipher suite %s not supported or doesn't exist", name)) //nolint:staticcheck // the stock kubelet's words
			continue
		}
		ids = append(ids, id)
		if weak {
			insecure = append(insecure, name)
		}
	}
	return ids, insecure, errors.Join(errs...)
}

// suite knows two names that Go spelled otherwise before, as users may still.
func suite(name string) (id uint16, weak, ok bool) {
	switch name {
	case "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":
		return tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, false, true
	case "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305":
		return tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, false, true
	}
	for _, s := range tls.CipherSuites() {
		if s.Name == name {
			return s.ID, false, true
		}
	}
	for _, s := range tls.InsecureCipherSuites() {
		if s.Name == name {
			return s.ID, true, true
		}
	}
	return 0, false, false
}
