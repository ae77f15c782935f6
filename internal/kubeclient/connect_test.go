package kubeclient

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func serve(t *testing.T) (*httptest.Server, *rest.Config) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Header.Get("Authorization"), " ", len(r.TLS.PeerCertificates), " ", r.UserAgent())
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server, &rest.Config{Host: server.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

func TestConnect(t *testing.T) {
	server, config := serve(t)
	certificate := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &server.TLS.Certificates[0], nil }
	for want, opts := range map[string]Options{
		"HTTP/2.0 Bearer token 0 agent": {UserAgent: "agent"},
		"HTTP/1.1 Bearer token 0 old":   {UserAgent: "old", HTTP1: true},
		"HTTP/2.0  1 agent":             {UserAgent: "agent", Certificate: certificate},
	} {
		t.Run(want, func(t *testing.T) {
			conn, err := Connect(config, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseIdle()
			resp, err := (&http.Client{Transport: conn}).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var got strings.Builder
			if err := resp.Write(&got); err != nil || !strings.HasSuffix(strings.TrimSpace(got.String()), want) {
				t.Fatalf("%s, %v", &got, err)
			}
		})
	}
}

func TestConnectNamesTheFile(t *testing.T) {
	_, config := serve(t)
	config.CAData, config.CAFile = nil, "/does/not/exist"
	if _, err := Connect(config, Options{}); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Fatalf("error %v", err)
	}
}
