package checks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
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
	web, db := pod(t, server.Listener.Addr().String()), pod(t, serveHealth(t))
	number := func(of probe.Target) int32 { return of.Ports[0].ContainerPort }
	web.Handler.HTTPGet = &corev1.HTTPGetAction{Port: intstr.FromInt32(number(web))}
	web.Handler.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(number(web))}
	db.Handler.GRPC = &corev1.GRPCAction{Port: number(db)}
	set := Default(Config{})
	for range 100 {
		for kind, target := range map[probe.Kind]probe.Target{probe.HTTPGet: web, probe.TCPSocket: web, probe.GRPC: db} {
			if got := set[kind](t.Context(), target); got.Result != probe.Success {
				t.Fatalf("%s: %+v", kind, got)
			}
		}
	}
	for _, of := range []probe.Target{web, db} {
		if n := timeWaits(t, int(number(of))); n >= 20 {
			t.Errorf("port %d: %d sockets in TIME_WAIT", number(of), n)
		}
	}
}
