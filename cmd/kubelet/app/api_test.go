package app

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestComponentPages: /flagz and /statusz are there as their gates say.
func TestComponentPages(t *testing.T) {
	for gate, want := range map[string]int{"true": http.StatusOK, "false": http.StatusNotFound} {
		t.Run(gate, func(t *testing.T) {
			b, port := newBed(t), freePort(t)
			start(t, append(b.flags(t, "port: "+port+"\naddress: 127.0.0.1\nauthentication: {anonymous: {enabled: true}, webhook: {enabled: false}}\n"+
				"authorization: {mode: AlwaysAllow}\nfeatureGates: {ComponentFlagz: "+gate+", ComponentStatusz: "+gate+"}\n"),
				"--kubeconfig="+b.server(t, "token", &atomic.Int32{}), "--cert-dir="+filepath.Join(b.dir, "pki")))
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // its own certificate
			}}
			for path, want := range map[string]int{"/healthz": http.StatusOK, "/flagz": want, "/statusz": want} {
				await(t, path+" of the API", func() bool {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+path, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := client.Do(req)
					if err != nil {
						return false
					}
					defer resp.Body.Close()
					if resp.StatusCode != want {
						t.Errorf("%s: %s, want %d", path, resp.Status, want)
					}
					return true
				})
			}
		})
	}
}

// TestNoAPI: what is set for an API that is not served is told of, by its path.
func TestNoAPI(t *testing.T) {
	b := newBed(t)
	logs, stop := start(t, b.flags(t, "readOnlyPort: 10255\ntlsMinVersion: VersionTLS13\nauthentication: {anonymous: {enabled: true}}\nmaxPods: 7\n"))
	await(t, "warning", func() bool { return strings.Contains(logs.String(), "it is not served") })
	stop()
	for line := range strings.Lines(logs.String()) {
		if !strings.Contains(line, "it is not served") {
			continue
		}
		for _, field := range []string{"readOnlyPort", "tlsMinVersion", "authentication.anonymous.enabled"} {
			if !strings.Contains(line, field) {
				t.Errorf("%s is not named: %s", field, line)
			}
		}
		if strings.Contains(line, "maxPods") {
			t.Errorf("maxPods is named: %s", line)
		}
	}
}
