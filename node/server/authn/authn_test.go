package authn_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog/clientlogtest"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/authn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// signer is a certificate that signs others, and itself where parent is nil.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func sign(t *testing.T, parent *signer, change func(*x509.Certificate)) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	change(template)
	by, byKey := template, key
	if parent != nil {
		by, byKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), byKey)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &signer{cert, key}
}

func authority(t *testing.T, parent *signer, name string) *signer {
	return sign(t, parent, func(c *x509.Certificate) {
		c.Subject, c.IsCA, c.KeyUsage, c.ExtKeyUsage = pkix.Name{CommonName: name}, true, x509.KeyUsageCertSign, nil
	})
}

func pemOf(signers ...*signer) []byte {
	var all []byte
	for _, s := range signers {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})...)
	}
	return all
}

func casOf(t *testing.T, cfg authn.CAConfig, signers ...*signer) *authn.ClientCAs {
	t.Helper()
	cfg.File = filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(cfg.File, pemOf(signers...), 0o600))
	cas, err := authn.NewClientCAs(cfg, nil)
	must(t, err)
	must(t, cas.Load())
	return cas
}

func with(chain ...*signer) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{}
	for _, c := range chain {
		r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, c.cert)
	}
	return r
}

func TestX509(t *testing.T) {
	root, other := authority(t, nil, "root"), authority(t, nil, "other")
	between := authority(t, root, "between")
	uidOID := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}
	leaf := func(parent *signer, change func(*x509.Certificate)) *signer {
		return sign(t, parent, func(c *x509.Certificate) {
			c.Subject = pkix.Name{CommonName: "jane", Organization: []string{"a", "b"}}
			if change != nil {
				change(c)
			}
		})
	}
	uids := func(values ...any) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, v := range values {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: uidOID, Value: v})
			}
		}
	}
	var remaining []time.Duration
	a := authn.X509(casOf(t, authn.CAConfig{Observe: func(d time.Duration) { remaining = append(remaining, d) }}, root))
	for name, row := range map[string]struct {
		chain []*signer
		known bool
		uid   string
		err   string
	}{
		"signed by the root":         {[]*signer{leaf(root, nil)}, true, "", ""},
		"signed by one in between":   {[]*signer{leaf(between, nil), between}, true, "", ""},
		"the one in between missing": {[]*signer{leaf(between, nil)}, false, "", "unknown authority"},
		"another authority":          {[]*signer{leaf(other, nil)}, false, "", "unknown authority"},
		"brings its authority":       {[]*signer{leaf(other, nil), other}, false, "", "unknown authority"},
		"out of date":                {[]*signer{leaf(root, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })}, false, "", "expired"},
		"not yet":                    {[]*signer{leaf(root, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })}, false, "", "not yet valid"},
		"a server's":                 {[]*signer{leaf(root, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })}, false, "", "incompatible key usage"},
		"no name":                    {[]*signer{leaf(root, func(c *x509.Certificate) { c.Subject.CommonName = "" })}, false, "", ""},
		"none":                       {nil, false, "", ""},
		"a UID":                      {[]*signer{leaf(root, uids("u-1"))}, true, "u-1", ""},
		"two UIDs":                   {[]*signer{leaf(root, uids("u-1", "u-2"))}, false, "", "expected 1 UID"},
		"an empty UID":               {[]*signer{leaf(root, uids(""))}, false, "", "is empty"},
	} {
		user, known, err := a.Authenticate(with(row.chain...))
		if known != row.known || (row.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %+v, %v, %v", name, user, known, err)
		}
		if !known {
			continue
		}
		id := user.Extra["authentication.kubernetes.io/credential-id"]
		if user.Name != "jane" || user.UID != row.uid || !reflect.DeepEqual(user.Groups, []string{"a", "b"}) || len(id) != 1 || !strings.HasPrefix(id[0], "X509SHA256=") {
			t.Errorf("%s: %+v", name, user)
		}
	}
	if len(remaining) != 12 {
		t.Errorf("told of %d certificates", len(remaining))
	}
	if _, known, err := a.Authenticate(httptest.NewRequest(http.MethodGet, "/", nil)); known || err != nil {
		t.Errorf("without TLS: %v, %v", known, err)
	}
}

// TestClientCAsReload: a new authority counts without a restart, a file that
// can not be read changes nothing, and a replaced one is noticed too.
func TestClientCAsReload(t *testing.T) {
	first, second := authority(t, nil, "first"), authority(t, nil, "second")
	client := func(s *signer) *signer {
		return sign(t, s, func(c *x509.Certificate) { c.Subject.CommonName = "jane" })
	}
	ofFirst, ofSecond := client(first), client(second)
	file := filepath.Join(t.TempDir(), "ca.crt")
	cas, err := authn.NewClientCAs(authn.CAConfig{File: file, Reload: true}, nil)
	must(t, err)
	a := authn.X509(cas)
	knows := func(s *signer) bool { _, known, _ := a.Authenticate(with(s)); return known }
	if knows(ofFirst) || cas.Pool() != nil {
		t.Error("somebody is known before there is a file")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cas.Run(ctx) }()
	replace := func(data []byte) {
		must(t, os.WriteFile(file+".new", data, 0o600))
		must(t, os.Rename(file+".new", file))
	}
	replace(pemOf(first))
	await(t, func() bool { return knows(ofFirst) })
	if knows(ofSecond) {
		t.Error("the second authority is known already")
	}
	for _, broken := range []string{"", "no pem", string(pemOf(first)) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		replace([]byte(broken))
		if err := cas.Load(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", broken, err)
		}
		if !knows(ofFirst) {
			t.Errorf("%q: what was known before is forgotten", broken)
		}
	}
	must(t, os.WriteFile(file, pemOf(second), 0o600)) // in place
	await(t, func() bool { return knows(ofSecond) && !knows(ofFirst) })
	cancel()
	must(t, <-done)
}

func TestWithoutReloadTheFirstCounts(t *testing.T) {
	first, second := authority(t, nil, "first"), authority(t, nil, "second")
	cas := casOf(t, authn.CAConfig{}, first)
	before := cas.Pool()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, cas.Run(ctx))
	if cas.Pool() != before {
		t.Error("it was read again")
	}
	must(t, cas.Load())
	_ = second
	if _, err := authn.NewClientCAs(authn.CAConfig{File: "ca.crt"}, nil); err == nil {
		t.Error("a relative path")
	}
}

func await(t *testing.T, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("it did not come to pass")
		}
	}
}

// reviewer is an API server that knows a token.
type reviewer struct {
	calls  int
	err    error
	status authenticationv1.TokenReviewStatus
}

func (r *reviewer) Review(_ context.Context, ask *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	r.calls++
	if r.err != nil {
		return nil, r.err
	}
	answer := ask.DeepCopy()
	if ask.Spec.Token == "good" {
		answer.Status = r.status
	}
	return answer, nil
}

func known() authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
		Username: "jane", UID: "u-1", Groups: []string{"a"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
	}}
}

func bearer(text string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", text)
	return r
}

func TestTokens(t *testing.T) {
	api := &reviewer{status: known()}
	tokens, err := authn.NewTokens(authn.DefaultTokens(), api)
	must(t, err)
	want := server.User{Name: "jane", UID: "u-1", Groups: []string{"a"}, Extra: map[string][]string{"k": {"v"}}}
	r := bearer("bearer good ignored")
	if user, ok, err := tokens.Authenticate(r); !ok || err != nil || !reflect.DeepEqual(user, want) || r.Header.Get("Authorization") != "" {
		t.Errorf("%+v, %v, %v, header %q", user, ok, err, r.Header.Get("Authorization"))
	}
	for _, text := range []string{"", "Bearer", "Bearer ", "Basic good", "good"} {
		if _, ok, err := tokens.Authenticate(bearer(text)); ok || err != nil {
			t.Errorf("%q: %v, %v, want no opinion", text, ok, err)
		}
	}
	r = bearer("Bearer bad")
	if _, ok, err := tokens.Authenticate(r); ok || err == nil || err.Error() != "invalid bearer token" || r.Header.Get("Authorization") == "" {
		t.Errorf("a bad token: %v, %v", ok, err)
	}
	if api.calls != 2 {
		t.Errorf("%d calls", api.calls)
	}
}

// TestTokensInProtocols are for browsers, which can set no header.
func TestTokensInProtocols(t *testing.T) {
	tokens, err := authn.NewTokens(authn.DefaultTokens(), &reviewer{status: known()})
	must(t, err)
	as := func(token string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	for offer, row := range map[string]struct {
		left, err string
	}{
		as("good") + ", v5.channel.k8s.io, v4":      {"v5.channel.k8s.io,v4", ""},
		"v5.channel.k8s.io":                         {"", "none"},
		as("bad") + ",v5.channel.k8s.io":            {"", "invalid bearer token"},
		as("good"):                                  {"", "missing additional subprotocol"},
		as("good") + "," + as("good") + ",v5":       {"", "multiple"},
		as("") + ",v5":                              {"", "encoding"},
		as("\xff") + ",v5":                          {"", "encoding"},
		"base64url.bearer.authorization.k8s.io.!,v": {"", "encoding"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-WebSocket-Protocol", offer)
		_, ok, err := tokens.Authenticate(r)
		switch {
		case row.err == "none" && !ok && err == nil:
		case row.err == "" && ok && r.Header.Get("Sec-WebSocket-Protocol") == row.left:
		case row.err != "" && err != nil && strings.Contains(err.Error(), row.err):
		default:
			t.Errorf("%q: %v, %v, left %q", offer, ok, err, r.Header.Get("Sec-WebSocket-Protocol"))
		}
	}
}

// TestTokensAreKept for the time they should, failures to tell never.
func TestTokensAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &reviewer{status: known(), err: errors.New("away")}
		tokens, err := authn.NewTokens(authn.DefaultTokens(), api)
		must(t, err)
		ask := func() bool { _, ok, _ := tokens.Authenticate(bearer("Bearer good")); return ok }
		if first, second := ask(), ask(); first || second || api.calls != 2 {
			t.Errorf("while it is away: %d calls", api.calls)
		}
		api.err, api.status.Error, api.status.Authenticated = nil, "the token has expired", false
		if _, ok, err := tokens.Authenticate(bearer("Bearer good")); ok || err == nil || !strings.Contains(err.Error(), "the token has expired") {
			t.Errorf("%v, %v", ok, err)
		}
		api.status, api.calls = known(), 0
		if first, second := ask(), ask(); !first || !second || api.calls != 1 {
			t.Errorf("%d calls, want 1", api.calls)
		}
		time.Sleep(2 * time.Minute) // fake time
		if !ask() || api.calls != 2 {
			t.Errorf("after two minutes: %d calls, want 2", api.calls)
		}
	})
	if _, err := authn.NewTokens(authn.TokenConfig{CacheTTL: -1}, nil); err == nil {
		t.Error("a negative time")
	}
}

func Example() {
	tokens, err := authn.NewTokens(authn.DefaultTokens(), &reviewer{status: known()})
	if err != nil {
		fmt.Println(err)
		return
	}
	user, found, err := tokens.Authenticate(bearer("Bearer good"))
	fmt.Println(user.Name, user.Groups, found, err)
	_, found, err = tokens.Authenticate(bearer("Bearer bad"))
	fmt.Println(found, err)
	// Output:
	// jane [a] true <nil>
	// false invalid bearer token
}

func TestLogsOfClientGoStayWithTheirAgent(t *testing.T) {
	clientlogtest.Separate(t, authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme, func(ctx context.Context, client rest.Interface, log *slog.Logger) {
		_, _ = authn.Reviews(client, log).Review(ctx, &authenticationv1.TokenReview{}) // refused
	})
}
