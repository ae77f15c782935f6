package app

import (
	"context"
	"net"
	"strings"
	"testing"
)

func TestCgroupV1(t *testing.T) {
	for _, row := range []struct {
		v1, refused, fails bool
	}{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}} {
		err := checkCgroups(row.v1, row.refused)
		if (err != nil) != row.fails {
			t.Errorf("%+v: %v", row, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "kubelet is configured to not run on a host using cgroup v1") {
			t.Errorf("not the stock words: %v", err)
		}
	}
	if !onCgroupV1(t.TempDir()) || onCgroupV1("/nowhere") {
		t.Error("what is no cgroup2 filesystem is v1, and a host without cgroups is not")
	}
}

func TestNodeName(t *testing.T) {
	for in, want := range map[string]string{"Edge-7 ": "edge-7", "a.b": "a.b"} {
		if got, err := nodeName(in); got != want || err != nil {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if got, err := nodeName("  "); err == nil && got == "" {
		t.Error("an empty name")
	}
	if _, err := nodeName("under_score"); err == nil || !strings.Contains(err.Error(), "--hostname-override") {
		t.Errorf("got %v", err)
	}
}

func TestNodeIPs(t *testing.T) {
	for _, row := range []struct{ flag, want, fails string }{
		{flag: "192.0.2.1", want: "192.0.2.1"},
		{flag: "2001:db8:0::1", want: "2001:db8::1"},
		{flag: "192.0.2.1, 2001:db8::1", want: "192.0.2.1 2001:db8::1"},
		{flag: "2001:db8::1,192.0.2.1", want: "2001:db8::1 192.0.2.1"},
		{flag: "x", fails: `bad --node-ip "x": nodeIP must be a valid IP address`},
		{flag: "127.0.0.1", fails: `bad --node-ip "127.0.0.1": nodeIP can't be loopback address`},
		{flag: "::1", fails: `bad --node-ip "::1": nodeIP can't be loopback address`},
		{flag: "224.0.0.9", fails: `bad --node-ip "224.0.0.9": nodeIP can't be a multicast address`},
		{flag: "169.254.1.1", fails: `bad --node-ip "169.254.1.1": nodeIP can't be a link-local unicast address`},
		{flag: "192.0.2.1,192.0.2.2", fails: `bad --node-ip "192.0.2.1,192.0.2.2": must contain either a single IP or a dual-stack pair of IPs`},
		{flag: "192.0.2.1,2001:db8::1,192.0.2.2", fails: "must contain either a single IP or a dual-stack pair of IPs"},
		{flag: "0.0.0.0,2001:db8::1", fails: "cannot include '0.0.0.0' or '::'"},
	} {
		got, err := nodeIPs(t.Context(), row.flag)
		if strings.Join(got, " ") != row.want || (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) {
			t.Errorf("%s: %v, %v; want %s%s", row.flag, got, err, row.want, row.fails)
		}
	}
}

// Without a word the host's own address is found, and of the family asked for
// where there is one.
func TestFoundNodeIP(t *testing.T) {
	for _, flag := range []string{"", "0.0.0.0", "::"} {
		got, err := nodeIPs(t.Context(), flag)
		if err != nil || len(got) > 1 {
			t.Errorf("%q: %v, %v", flag, got, err)
		}
		for _, ip := range got {
			if parsed := net.ParseIP(ip); parsed == nil || !parsed.IsGlobalUnicast() {
				t.Errorf("%q: %s is no address to talk to", flag, ip)
			}
		}
	}
	addrs := []net.Addr{
		&net.IPNet{IP: net.ParseIP("127.0.0.1")}, &net.IPNet{IP: net.ParseIP("fe80::1")},
		&net.IPNet{IP: net.ParseIP("fd00::5")}, &net.IPNet{IP: net.ParseIP("10.1.2.3")},
	}
	if v4, v6 := firstIP(addrs, "ip4"), firstIP(addrs, "ip6"); v4.String() != "10.1.2.3" || v6.String() != "fd00::5" {
		t.Errorf("first of the interfaces: %v, %v", v4, v6)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if ip := routedIP(ended, "ip4"); ip != nil {
		t.Errorf("an ended context found %v", ip)
	}
}
