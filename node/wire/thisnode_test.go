package wire_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/wire"
)

// keeper is a Registration of one Node.
type keeper struct{ node *corev1.Node }

func (k *keeper) Node() *corev1.Node { return k.node }
func (k *keeper) Kick()              {}

// TestAddressesOfTheNodeObject: pods have the addresses that the Node object
// tells, and a guess only as long as nobody tells any.
func TestAddressesOfTheNodeObject(t *testing.T) {
	var this wire.ThisNode
	cfg := config(t, "unix:///nowhere")
	cfg.Node.HostIPs = func(context.Context) []string { return []string{"192.0.2.9"} }
	ask := cfg.Around(&this).Node.HostIPs
	expect := func(when string, want ...string) {
		t.Helper()
		if got := ask(t.Context()); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect("nobody keeps the object", "192.0.2.9")
	k := &keeper{&corev1.Node{}}
	this.Keep(k)
	expect("it is not filled in yet", "192.0.2.9")
	moved := func(ips ...string) {
		n := &corev1.Node{}
		n.UID = "uid-1"
		for _, ip := range ips {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		k.node = n
	}
	moved()
	expect("a cloud has still to fill it in")
	moved("10.0.0.5")
	expect("it is filled in", "10.0.0.5")
	moved("10.0.0.6", "fd00::6")
	expect("the node moved", "10.0.0.6", "fd00::6")
}
