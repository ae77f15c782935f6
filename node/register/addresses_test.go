package register

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// network is a host with these addresses.
type network struct {
	host     []string
	resolves []string // what the node's name resolves to
	v4, v6   string   // of the default routes
}

func ips(texts ...string) (out []net.IP) {
	for _, text := range texts {
		out = append(out, net.ParseIP(text))
	}
	return out
}

func (n network) Addresses() ([]net.IP, error) { return ips(n.host...), nil }

func (n network) Lookup(context.Context, string) ([]net.IP, error) {
	if n.resolves == nil {
		return nil, errors.New("no such host")
	}
	return ips(n.resolves...), nil
}

func (n network) Default(_ context.Context, preferIPv6 bool) (net.IP, error) {
	first, second := n.v4, n.v6
	if preferIPv6 {
		first, second = second, first
	}
	if first == "" {
		first = second
	}
	if first == "" {
		return nil, errors.New("no route")
	}
	return net.ParseIP(first), nil
}

func TestAddresses(t *testing.T) {
	host := network{host: []string{"127.0.0.1", "10.0.0.5", "10.0.0.6", "fd00::5"}, v4: "10.0.0.5", v6: "fd00::5"}
	for _, tt := range []struct {
		name     string
		nodeIPs  []net.IP
		hostname string // default "n1"
		external bool
		network  network
		had      []string // addresses before, as "TYPE ADDRESS"
		want     []string
		provided string // the annotation
		err      string
	}{
		{name: "default route", network: host, want: []string{"InternalIP 10.0.0.5", "Hostname n1"}},
		{name: "one given", nodeIPs: ips("10.0.0.6"), network: host, want: []string{"InternalIP 10.0.0.6", "Hostname n1"}},
		{
			name: "both families", nodeIPs: ips("fd00::5", "10.0.0.6"), network: host,
			want: []string{"InternalIP fd00::5", "InternalIP 10.0.0.6", "Hostname n1"},
		},
		{name: "a family", nodeIPs: ips("::"), network: host, want: []string{"InternalIP fd00::5", "Hostname n1"}},
		{name: "the other family", nodeIPs: ips("0.0.0.0"), network: host, want: []string{"InternalIP 10.0.0.5", "Hostname n1"}},
		{name: "the hostname is an address", hostname: "192.0.2.9", network: host, want: []string{"InternalIP 192.0.2.9", "Hostname 192.0.2.9"}},
		{
			name:    "the name resolves to an address of the host",
			network: network{host: host.host, resolves: []string{"127.0.0.1", "203.0.113.1", "fd00::5", "10.0.0.6"}, v4: "10.0.0.5"},
			want:    []string{"InternalIP 10.0.0.6", "Hostname n1"},
		},
		{
			name: "the name resolves to the other family only", network: network{host: host.host, resolves: []string{"fd00::5"}, v4: "10.0.0.5"},
			want: []string{"InternalIP fd00::5", "Hostname n1"},
		},
		{name: "loopback", nodeIPs: ips("127.0.0.1"), network: host, err: "failed to validate nodeIP: nodeIP can't be loopback address"},
		{
			name: "not the host's", nodeIPs: ips("10.0.0.5", "fd00::9"), network: host,
			err: `failed to validate secondaryNodeIP: node IP: "fd00::9" not found in the host's network interfaces`,
		},
		{name: "no address at all", network: network{}, err: "can't get ip address of node n1. error: no route"},

		{name: "external, no node IP", external: true, network: host, want: []string{"Hostname n1"}},
		{
			name: "external, node IP", external: true, nodeIPs: ips("10.0.0.6"), network: host,
			want: []string{"InternalIP 10.0.0.6", "Hostname n1"}, provided: "10.0.0.6",
		},
		{
			name: "external, both families", external: true, nodeIPs: ips("10.0.0.6", "fd00::5"), network: host,
			want: []string{"InternalIP 10.0.0.6", "InternalIP fd00::5", "Hostname n1"}, provided: "10.0.0.6,fd00::5",
		},
		{
			name: "external, a family: bootstrapped, without the annotation", external: true, nodeIPs: ips("::"), network: host,
			want: []string{"InternalIP fd00::5", "Hostname n1"},
		},
		{
			name: "external, filled in by the controller", external: true, nodeIPs: ips("10.0.0.6"), network: host,
			had: []string{"ExternalIP 203.0.113.1"}, want: []string{"ExternalIP 203.0.113.1"}, provided: "10.0.0.6",
		},
		{name: "no longer external", network: host, had: []string{"ExternalIP 203.0.113.1"}, want: []string{"InternalIP 10.0.0.5", "Hostname n1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &corev1.Node{}
			n.Annotations = map[string]string{annotationNodeIP: "stale", "other": "x"}
			for _, text := range tt.had {
				kind, address, _ := strings.Cut(text, " ")
				n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: address})
			}
			if tt.hostname == "" {
				tt.hostname = "n1"
			}
			set := addressSetter(AddressConfig{NodeName: "n1", Hostname: tt.hostname, NodeIPs: tt.nodeIPs, ExternalCloud: tt.external}, tt.network)
			err := set(t.Context(), n)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range n.Status.Addresses {
				got = append(got, string(a.Type)+" "+a.Address)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got := n.Annotations[annotationNodeIP]; got != tt.provided || n.Annotations["other"] != "x" {
				t.Errorf("annotations %v, want %q", n.Annotations, tt.provided)
			}
		})
	}
}

func TestParseNodeIPs(t *testing.T) {
	for _, tt := range []struct {
		text    string
		want    []string
		ignored []string
		err     string
	}{
		{text: ""},
		{text: "10.0.0.1", want: []string{"10.0.0.1"}},
		{text: "fd00::1, 10.0.0.1", want: []string{"fd00::1", "10.0.0.1"}},
		{text: "::", want: []string{"::"}},
		{text: "web,10.0.0.1", want: []string{"10.0.0.1"}, ignored: []string{"web"}},
		{text: "10.0.0.1,10.0.0.2", err: `bad --node-ip "10.0.0.1,10.0.0.2": must contain either a single IP or a dual-stack pair of IPs`},
		{text: "10.0.0.1,fd00::1,fd00::2", err: `bad --node-ip "10.0.0.1,fd00::1,fd00::2": must contain either a single IP or a dual-stack pair of IPs`},
		{text: "10.0.0.1,::", err: `bad --node-ip "10.0.0.1,::": dual-stack node IP cannot include '0.0.0.0' or '::'`},
	} {
		got, ignored, err := ParseNodeIPs(tt.text)
		var texts []string
		for _, ip := range got {
			texts = append(texts, ip.String())
		}
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%q: %v", tt.text, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, texts) + cmp.Diff(tt.ignored, ignored); diff != "" || err != nil {
			t.Errorf("%q: %v %s", tt.text, err, diff)
		}
	}
}

func TestCheckNodeIP(t *testing.T) {
	host := ips("10.0.0.5")
	for text, want := range map[string]string{
		"10.0.0.5": "", "127.0.0.1": "nodeIP can't be loopback address", "::1": "nodeIP can't be loopback address",
		"224.0.0.1": "nodeIP can't be a multicast address", "fe80::1": "nodeIP can't be a link-local unicast address",
		"0.0.0.0": "nodeIP can't be an all zeros address", "web": "nodeIP must be a valid IP address",
		"10.0.0.6": `node IP: "10.0.0.6" not found in the host's network interfaces`,
	} {
		got := ""
		if err := CheckNodeIP(net.ParseIP(text), host); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestHostNetwork asks this machine.
func TestHostNetwork(t *testing.T) {
	all, err := HostNetwork{}.Addresses()
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	ip, err := HostNetwork{}.Default(t.Context(), false)
	if err != nil {
		t.Skipf("this machine has only loopback: %v", err)
	}
	if err := CheckNodeIP(ip, all); err != nil {
		t.Errorf("the default address can not be a node's: %v", err)
	}
	found, err := HostNetwork{}.Lookup(t.Context(), "localhost")
	if err != nil || len(found) == 0 || !found[0].IsLoopback() {
		t.Errorf("localhost: %v, %v", found, err)
	}
}
