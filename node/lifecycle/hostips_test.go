package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
)

func TestHostIPs(t *testing.T) {
	for _, tt := range []struct{ have, want []string }{
		{nil, nil},
		{[]string{"Hostname n1"}, nil},
		{[]string{"ExternalIP 203.0.113.1", "InternalIP 10.0.0.1", "InternalIP 10.0.0.2"}, []string{"10.0.0.1"}},
		{[]string{"InternalIP 10.0.0.1", "InternalIP fd00::1"}, []string{"10.0.0.1", "fd00::1"}},
		{[]string{"InternalIP fd00::1", "ExternalIP 203.0.113.1", "InternalIP 10.0.0.1"}, []string{"fd00::1", "10.0.0.1"}},
		{[]string{"ExternalIP 203.0.113.1"}, []string{"203.0.113.1"}},
	} {
		n := &corev1.Node{}
		for _, text := range tt.have {
			kind, address, _ := strings.Cut(text, " ")
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: address})
		}
		if diff := cmp.Diff(tt.want, lifecycle.HostIPs(n)); diff != "" {
			t.Errorf("%v: %s", tt.have, diff)
		}
	}
}
