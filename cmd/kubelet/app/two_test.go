package app

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"nodekit.dev/runtime/runtimetest"
)

// TestTwoKubelets live in one process, each with a runtime, an API server, a
// log, series and gates of its own.
func TestTwoKubelets(t *testing.T) {
	type side struct {
		*bed
		name  string
		stop  func() int
		logs  *log
		asked *atomic.Int32
	}
	sides := []*side{{name: "north"}, {name: "south"}}
	for i, s := range sides {
		s.bed, s.asked = newBed(t), &atomic.Int32{}
		s.manifest(t)
		gates := []string{"true", "false"}[i]
		flags := append(s.flags(t, "port: "+freePort(t)+"\naddress: 127.0.0.1\nfeatureGates: {ContainerStopSignals: "+gates+"}\n"),
			"--kubeconfig="+s.server(t, s.name, s.asked), "--cert-dir="+filepath.Join(s.dir, "pki"), "--hostname-override="+s.name)
		s.logs, s.stop = start(t, flags)
	}
	for i, s := range sides {
		s.awaitRunning(t)
		series := s.text(t, "/metrics",
			`kubelet_node_name{node="`+s.name+`"} 1`,
			`kubernetes_feature_enabled{name="ContainerStopSignals",stage="ALPHA"} `+[]string{"1", "0"}[i],
			`kubelet_runtime_operations_total{operation_type="run_podsandbox"} 1`)
		if other := sides[1-i].name; strings.Contains(series, other) || strings.Contains(s.logs.String(), other) {
			t.Errorf("%s shows %s", s.name, other)
		}
		await(t, "request of "+s.name, func() bool { return s.asked.Load() > 0 })
	}
	if code := sides[0].stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	had := sides[1].asked.Load()
	await(t, "request after the other ended", func() bool { return sides[1].asked.Load() > had })
	sides[1].text(t, "/healthz", "ok")
	for _, s := range sides {
		if n := s.world.Calls(runtimetest.MethodRunSandbox); n != 1 {
			t.Errorf("%s made %d sandboxes", s.name, n)
		}
	}
}

// server is an API server that has nothing, and refuses whoever has another
// one's token; the result is a kubeconfig.
func (b *bed) server(t *testing.T, token string, asked *atomic.Int32) string {
	t.Helper()
	return b.serverOf(t, token, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	})
}

// serverOf is an API server that answers as told.
func (b *bed) serverOf(t *testing.T, token string, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("%s was asked with %q", token, got)
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(b.dir, "ca.pem")
	path := filepath.Join(b.dir, "kubeconfig")
	for name, text := range map[string]string{
		ca: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		path: "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
			"clusters: [{name: c, cluster: {server: '" + server.URL + "', certificate-authority: " + ca + "}}]\nusers: [{name: u, user: {token: " + token + "}}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestOOMScoreAdj: the process gives itself the score of the configuration.
func TestOOMScoreAdj(t *testing.T) {
	b := newBed(t)
	flags := b.flags(t, "oomScoreAdj: 321\n")
	cmd, logs := child(t, "as it is", flags)
	await(t, "oom_score_adj 321; the kubelet's log:\n"+logs.String(), func() bool {
		score, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "oom_score_adj"))
		return err == nil && strings.TrimSpace(string(score)) == "321"
	})
}
