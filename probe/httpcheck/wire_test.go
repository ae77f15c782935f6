package httpcheck

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/needtest"
	"nodekit.dev/probe"
)

// TestRequest holds what servers see, byte for byte.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		name, agent string
		own         []corev1.HTTPHeader
		want        string // "Connection: close" is always there
	}{
		{"defaults", "", nil, "Host: AT|User-Agent: kube-probe/1.37|Accept: */*"},
		{"agent of the node", "vendor/1", nil, "Host: AT|User-Agent: vendor/1|Accept: */*"},
		{"own host", "", []corev1.HTTPHeader{{Name: "host", Value: "a.test"}}, "Host: a.test|User-Agent: kube-probe/1.37|Accept: */*"},
		{"empty host", "", []corev1.HTTPHeader{{Name: "Host"}}, "Host: AT|User-Agent: kube-probe/1.37|Accept: */*"},
		{"own defaults", "", []corev1.HTTPHeader{{Name: "user-agent", Value: "me"}, {Name: "ACCEPT", Value: "a/b"}}, "Host: AT|User-Agent: me|Accept: a/b"},
		{"no defaults", "", []corev1.HTTPHeader{{Name: "User-Agent"}, {Name: "Accept"}}, "Host: AT"},
		{"two values", "", []corev1.HTTPHeader{{Name: "x-a", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "X-B"}}, "Host: AT|User-Agent: kube-probe/1.37|Accept: */*|X-A: 1|X-A: 2|X-B: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen bytes.Buffer
			s := listen(t, func(conn net.Conn) {
				for buf := make([]byte, 1); !strings.HasSuffix(seen.String(), "\r\n\r\n"); {
					if _, err := conn.Read(buf); err != nil {
						return
					}
					seen.Write(buf)
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 204 None\r\n\r\n")
			})
			got := New(Config{UserAgent: c.agent}).Check(t.Context(), Target{URL: parse(t, "http://"+s.address+"/x?y=1"), Headers: c.own})
			if got != (probe.Outcome{Result: probe.Success}) {
				t.Errorf("%+v", got)
			}
			<-s.gone
			var want []string
			for line := range strings.SplitSeq(strings.ReplaceAll(c.want, "AT", s.address), "|") {
				want = append(want, line)
			}
			request := "GET /x?y=1 HTTP/1.1\r\n" + strings.Join(want, "\r\n") + "\r\nConnection: close\r\n\r\n"
			if sorted(seen.String()) != sorted(request) {
				t.Errorf("got\n%s\nwant\n%s", seen.String(), request)
			}
		})
	}
}

// sorted drops what is not ours: where net/http puts its own line.
func sorted(request string) string {
	return strings.Replace(request, "Connection: close\r\n", "", 1)
}

// TestHeadersThatAreNone do not reach the server.
func TestHeadersThatAreNone(t *testing.T) {
	at := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") }, nil, plain)
	for _, h := range []corev1.HTTPHeader{
		{Name: "a b", Value: "c"}, {Name: "A", Value: "b\r\nC: d"}, {Name: "", Value: "x"}, {Name: "A:", Value: "x"},
	} {
		got := New(Config{}).Check(t.Context(), Target{URL: at, Headers: []corev1.HTTPHeader{h}})
		if got.Result != probe.Failure || !strings.Contains(got.Output, "net/http: invalid header field") {
			t.Errorf("%+v: %+v", h, got)
		}
	}
}

// TestAnyCertificate: pods sign their own, and forget to renew them.
func TestAnyCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	expired := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"elsewhere.test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0),
	}
	raw, err := x509.CreateCertificate(rand.Reader, expired, expired, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	at := serve(t, site, func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	}, secure)
	if got := New(Config{}).Check(t.Context(), Target{URL: at}); got.Result != probe.Success {
		t.Errorf("%+v", got)
	}
}

// TestNoProxy: what the agent's environment names is not for pods.
func TestNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	if proxy := newTransport(nil, false).Proxy; proxy != nil {
		t.Error("the transport asks for a proxy")
	}
}

func TestIPv6(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		needtest.SkipOrFail(t, "needs IPv6 on loopback: "+err.Error())
	}
	at := serve(t, site, func(s *httptest.Server) { _ = s.Listener.Close(); s.Listener = l }, plain)
	got := New(Config{}).Check(t.Context(), Target{URL: at.JoinPath("/ok")})
	if got.Result != probe.Success || !strings.HasPrefix(got.Output, "[::1]:") {
		t.Errorf("%+v", got)
	}
}

// TestRedirectToAnotherPort of the same host is followed, as by the stock kubelet.
func TestRedirectToAnotherPort(t *testing.T) {
	next := serve(t, site, nil, secure)
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, next.JoinPath("/chunked").String(), http.StatusPermanentRedirect)
	}, nil, plain)
	if got := New(Config{}).Check(t.Context(), Target{URL: first}); got != (probe.Outcome{Result: probe.Success, Output: "one two three"}) {
		t.Errorf("%+v", got)
	}
}
