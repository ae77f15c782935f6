package checks

import (
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/internal/sockets"
	"nodekit.dev/probe"
)

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
		if n, err := sockets.TimeWait(int(number(of))); n >= 20 || err != nil {
			t.Errorf("port %d: %d sockets in TIME_WAIT, %v", number(of), n, err)
		}
	}
}
