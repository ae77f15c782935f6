package nodecert

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func leafOf(node string, from, to time.Duration) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		NotBefore: noon.Add(from), NotAfter: noon.Add(to),
	}
}

func TestDecide(t *testing.T) {
	want := clientTemplate("edge-7")
	moved := serverTemplate("edge-7", []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.9"}}, false)
	good := leafOf("edge-7", -time.Hour, time.Hour)
	in := func(s requestState) *request { return &request{asks: want, state: s} }
	later := noon.Add(time.Minute)
	for _, c := range []struct {
		name string
		s    situation
		want verb
		wake time.Time
		why  string
	}{
		{"nothing there", situation{want: want}, ask, time.Time{}, "there is none"},
		{"nothing there, after a failure", situation{want: want, retryAt: later}, idle, later, "there is none"},
		{"nothing there, addresses unknown", situation{}, idle, time.Time{}, "waiting for the node's addresses"},
		{"good, no rotation", situation{want: want, current: good}, idle, good.NotAfter, ""},
		{"good, due later", situation{want: want, current: good, due: later}, idle, later, ""},
		{"due", situation{want: want, current: good, due: noon}, ask, time.Time{}, "most of its life is over"},
		{"due, but a failure just now", situation{want: want, current: good, due: noon, retryAt: later}, idle, later, ""},
		{"expired", situation{want: want, current: leafOf("edge-7", -2*time.Hour, 0)}, ask, time.Time{}, "it expired"},
		{"another node's", situation{want: want, current: leafOf("edge-8", -time.Hour, time.Hour)}, ask, time.Time{}, `not "system:node:edge-7"`},
		{"borrowed", situation{want: want, current: good, replace: "it came with the kubeconfig"}, ask, time.Time{}, "it came"},
		{"addresses moved", situation{want: moved, current: good}, ask, time.Time{}, "it lacks the address 10.0.0.9"},
		{"addresses gone", situation{current: good}, idle, good.NotAfter, ""},
		{"expired while addresses are gone", situation{current: leafOf("edge-7", -2*time.Hour, -time.Hour)}, idle, time.Time{}, "waiting for the node's addresses"},
		{"asked", situation{want: want, request: in(statePending)}, await, time.Time{}, ""},
		{"asked, watch failed just now", situation{want: want, request: in(statePending), retryAt: later}, idle, later, ""},
		{"asked for what is not wanted any more", situation{want: moved, request: in(statePending)}, forget, time.Time{}, "changed"},
		{"issued for what is not wanted any more", situation{want: moved, request: in(stateIssued)}, forget, time.Time{}, "changed"},
		{"issued", situation{want: want, request: in(stateIssued), current: good}, install, time.Time{}, ""},
		{"issued, disk full just now", situation{want: want, request: in(stateIssued), retryAt: later}, idle, later, ""},
		{"denied", situation{want: want, request: in(stateRejected), retryAt: later}, forget, time.Time{}, "not granted"},
		{"kubeconfig not written", situation{want: want, current: good, unfinished: true}, finish, time.Time{}, ""},
		{"kubeconfig not written just now", situation{want: want, current: good, unfinished: true, retryAt: later}, idle, later, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.now = noon
			got := decide(c.s)
			if got.do != c.want || !got.wake.Equal(c.wake) || !strings.Contains(got.why, c.why) {
				t.Fatalf("step %+v; want verb %d, wake %v, %q", got, c.want, c.wake, c.why)
			}
		})
	}
}

func TestRotateAt(t *testing.T) {
	leaf := leafOf("edge-7", 0, 10*time.Hour)
	for random, want := range map[float64]time.Duration{0: 7 * time.Hour, 0.5: 8 * time.Hour, 1: 9 * time.Hour} {
		if got := rotateAt(leaf, random).Sub(noon).Round(time.Second); got != want {
			t.Errorf("random %v: %v, want %v", random, got, want)
		}
	}
}

func TestServerTemplate(t *testing.T) {
	list := func(pairs ...string) (list []corev1.NodeAddress) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, corev1.NodeAddress{Type: corev1.NodeAddressType(pairs[i]), Address: pairs[i+1]})
		}
		return list
	}
	for _, c := range []struct {
		name      string
		addresses []corev1.NodeAddress
		dnsOnly   bool
		names     string
		ips       string
		none      bool
	}{
		{name: "none", none: true},
		{name: "name only", addresses: list("Hostname", "edge-7"), none: true},
		{name: "name only, allowed", addresses: list("Hostname", "edge-7"), dnsOnly: true, names: "edge-7"},
		{name: "nothing, name allowed", dnsOnly: true, none: true},
		{name: "sorted, each once", names: "a b", ips: "10.0.0.2 10.0.0.10 fd00::1",
			addresses: list("InternalIP", "10.0.0.10", "ExternalIP", "10.0.0.2", "InternalIP", "fd00::1", "InternalIP", "10.0.0.2", "InternalDNS", "b", "ExternalDNS", "a", "Hostname", "b")},
		{name: "host name that is an address", addresses: list("Hostname", "10.0.0.1"), ips: "10.0.0.1"},
		{name: "not an address, empty, unknown type", addresses: list("InternalIP", "x", "InternalIP", "", "Hostname", "", "Odd", "10.0.0.3", "InternalIP", "10.0.0.1"), ips: "10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := serverTemplate("edge-7", c.addresses, c.dnsOnly)
			if (got == nil) != c.none {
				t.Fatalf("template %+v", got)
			}
			if c.none {
				return
			}
			var ips []string
			for _, ip := range got.ips {
				ips = append(ips, ip.String())
			}
			if strings.Join(got.names, " ") != c.names || strings.Join(ips, " ") != c.ips {
				t.Fatalf("names %v, addresses %v", got.names, ips)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	want := &template{node: "edge-7", names: []string{"a"}, ips: []net.IP{net.ParseIP("10.0.0.1")}}
	leaf := leafOf("edge-7", 0, time.Hour)
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, "it lacks the name a"},
		{func() { leaf.DNSNames = []string{"b", "a"} }, "it lacks the address 10.0.0.1"},
		{func() { leaf.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1).To4()} }, ""},
		{func() { leaf.Subject.Organization = nil }, "it is not in the group system:nodes"},
		{func() { leaf.Subject.CommonName = "kubernetes-admin" }, `it is for "kubernetes-admin"`},
	} {
		if c.change(); !strings.Contains(want.missing(leaf), c.want) || c.want == "" && want.missing(leaf) != "" {
			t.Errorf("missing %q, want %q", want.missing(leaf), c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	type answer struct {
		status int
		after  time.Duration
	}
	for name, c := range map[string]struct {
		answers []answer
		due     bool
	}{
		"none":                    {nil, false},
		"one":                     {[]answer{{401, 0}}, false},
		"one, then away":          {[]answer{{401, 0}, {0, time.Hour}, {503, time.Second}}, false},
		"for a minute":            {[]answer{{401, 0}, {401, 60 * time.Second}}, true},
		"errors between":          {[]answer{{401, 0}, {0, time.Second}, {503, time.Second}, {401, 58 * time.Second}}, true},
		"an answer between":       {[]answer{{401, 0}, {200, 30 * time.Second}, {401, 30 * time.Second}}, false},
		"forbidden is no refusal": {[]answer{{401, 0}, {403, time.Second}, {401, 59 * time.Second}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r refusals
			now := noon
			for _, a := range c.answers {
				now = now.Add(a.after)
				r = r.after(a.status, now)
			}
			if r.told != c.due {
				t.Fatalf("%+v", r)
			}
		})
	}
}

// A certificate that is good for 50 years by a clock of 1970 is looked at again
// soon after the clock was set.
func TestNapFor(t *testing.T) {
	for name, c := range map[string]struct {
		wake time.Time
		want time.Duration
	}{
		"never":    {time.Time{}, lookAgain},
		"far off":  {noon.Add(50 * 365 * 24 * time.Hour), lookAgain},
		"soon":     {noon.Add(time.Second), time.Second},
		"long ago": {noon.Add(-time.Second), -time.Second},
	} {
		if got := napFor(noon, c.wake); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestRemake(t *testing.T) {
	leaf := func(cn string, left time.Duration) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: cn}, NotAfter: noon.Add(left)}
	}
	for name, c := range map[string]struct {
		leaf *x509.Certificate
		want bool
	}{
		"fresh":          {leaf("edge-7@1", 300*24*time.Hour), false},
		"near its end":   {leaf("edge-7@1", 29*24*time.Hour), true},
		"another host":   {leaf("edge-8@1", 300*24*time.Hour), true},
		"somebody's own": {leaf("edge-7", -time.Hour), false},
	} {
		if got := remake(c.leaf, "edge-7", noon); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
