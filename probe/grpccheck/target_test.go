package grpccheck

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/probe"
)

func TestTargetOf(t *testing.T) {
	service, secret, plain, odd := "db", corev1.GRPCProbeModeTLS, corev1.GRPCProbeModePlaintext, corev1.GRPCProbeMode("mTLS")
	for name, tc := range map[string]struct {
		host string
		ask  *corev1.GRPCAction
		tls  bool
		want Target // empty: an error
	}{
		"port":           {"10.0.0.7", &corev1.GRPCAction{Port: 80}, false, Target{Address: "10.0.0.7:80", Timeout: time.Second}},
		"IPv6, service":  {"fd00::7", &corev1.GRPCAction{Port: 80, Service: &service}, false, Target{Address: "[fd00::7]:80", Service: "db", Timeout: time.Second}},
		"TLS":            {"10.0.0.7", &corev1.GRPCAction{Port: 80, Mode: &secret}, true, Target{Address: "10.0.0.7:80", TLS: true, Timeout: time.Second}},
		"TLS, gate off":  {"10.0.0.7", &corev1.GRPCAction{Port: 80, Mode: &secret}, false, Target{Address: "10.0.0.7:80", Timeout: time.Second}},
		"plain":          {"10.0.0.7", &corev1.GRPCAction{Port: 80, Mode: &plain}, true, Target{Address: "10.0.0.7:80", Timeout: time.Second}},
		"unknown mode":   {"10.0.0.7", &corev1.GRPCAction{Port: 80, Mode: &odd}, true, Target{}},
		"no IP yet":      {"", &corev1.GRPCAction{Port: 80}, false, Target{}},
		"no such port":   {"10.0.0.7", &corev1.GRPCAction{Port: 65536}, false, Target{}},
		"not a grpc one": {"10.0.0.7", nil, false, Target{}},
	} {
		got, err := TargetOf(probe.Target{Host: tc.host, Timeout: time.Second, Handler: corev1.ProbeHandler{GRPC: tc.ask}}, tc.tls)
		if failed := err != nil; failed != (tc.want.Address == "") || !failed && !same(got, tc.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func same(a, b Target) bool {
	return a.Address == b.Address && a.Service == b.Service && a.TLS == b.TLS && a.Timeout == b.Timeout
}
