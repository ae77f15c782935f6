package checks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
)

// timeWaits counts sockets in TIME_WAIT (state 06) of a port, on either end.
func timeWaits(t *testing.T, port int) int {
	t.Helper()
	n := 0
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			end := fmt.Sprintf(":%04X", port)
			if len(f) > 3 && f[3] == "06" && (strings.HasSuffix(f[1], end) || strings.HasSuffix(f[2], end)) {
				n++
			}
		}
	}
	return n
}

func TestNoTimeWaitPilesUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	target := probe.Target{Host: at.Hostname()}
	target.Handler.HTTPGet = &corev1.HTTPGetAction{Port: intstr.FromInt(port)}
	target.Handler.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt(port)}
	set := Default(Config{})
	for range 500 {
		for _, kind := range []probe.Kind{probe.HTTPGet, probe.TCPSocket} {
			if got := set[kind](t.Context(), target); got.Result != probe.Success {
				t.Fatalf("%s: %+v", kind, got)
			}
		}
	}
	if n := timeWaits(t, port); n >= 20 {
		t.Errorf("%d sockets in TIME_WAIT", n)
	}
}
