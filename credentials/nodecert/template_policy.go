package nodecert

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/netip"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// template is what a certificate must say.
type template struct {
	signer string
	names  []string // DNS, sorted
	ips    []net.IP // sorted
	node   string
}

const (
	nodesGroup     = "system:nodes"
	nodeUserPrefix = "system:node:"
)

func clientTemplate(node string) *template {
	return &template{signer: certificatesv1.KubeAPIServerClientKubeletSignerName, node: node}
}

// serverTemplate is nil while the node has no address that can be asked for:
// no signer approves a serving certificate without one. One IP address is
// needed; with dnsOnly a name will do.
func serverTemplate(node string, addresses []corev1.NodeAddress, dnsOnly bool) *template {
	names, ips := subjects(addresses)
	if len(ips) == 0 && (!dnsOnly || len(names) == 0) {
		return nil
	}
	return &template{signer: certificatesv1.KubeletServingSignerName, node: node, names: names, ips: ips}
}

// subjects are the names and IP addresses in a node's addresses, sorted, each
// once. A host name that is an IP address counts as one.
func subjects(addresses []corev1.NodeAddress) (names []string, ips []net.IP) {
	for _, a := range addresses {
		ip := net.ParseIP(a.Address)
		switch a.Type {
		case corev1.NodeHostName:
			if ip == nil && a.Address != "" {
				names = append(names, a.Address)
			}
		case corev1.NodeExternalDNS, corev1.NodeInternalDNS:
			if a.Address != "" {
				names = append(names, a.Address)
			}
			ip = nil
		case corev1.NodeExternalIP, corev1.NodeInternalIP:
		default:
			ip = nil
		}
		if ip != nil {
			ips = append(ips, ip)
		}
	}
	slices.Sort(names)
	slices.SortFunc(ips, func(a, b net.IP) int { return addr(a).Compare(addr(b)) })
	return slices.Compact(names), slices.CompactFunc(ips, net.IP.Equal)
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

func (t *template) request() *x509.CertificateRequest {
	return &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: nodeUserPrefix + t.node, Organization: []string{nodesGroup}},
		DNSNames:    t.names,
		IPAddresses: t.ips,
	}
}

// usages are what the signer expects of a key that is not RSA.
func (t *template) usages() []certificatesv1.KeyUsage {
	if t.signer == certificatesv1.KubeletServingSignerName {
		return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	}
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
}

func (t *template) equal(other *template) bool {
	return t.signer == other.signer && t.node == other.node &&
		slices.Equal(t.names, other.names) && slices.EqualFunc(t.ips, other.ips, net.IP.Equal)
}

// missing says what a certificate lacks of the template; "": nothing. It may
// say more than the template.
func (t *template) missing(leaf *x509.Certificate) string {
	if want := nodeUserPrefix + t.node; leaf.Subject.CommonName != want {
		return fmt.Sprintf("it is for %q, not %q", leaf.Subject.CommonName, want)
	}
	if !slices.Contains(leaf.Subject.Organization, nodesGroup) {
		return "it is not in the group " + nodesGroup
	}
	for _, name := range t.names {
		if !slices.Contains(leaf.DNSNames, name) {
			return "it lacks the name " + name
		}
	}
	for _, ip := range t.ips {
		if !slices.ContainsFunc(leaf.IPAddresses, ip.Equal) {
			return "it lacks the address " + ip.String()
		}
	}
	return ""
}

// answers says whether a certificate is for this key; a signer that mixes
// them up must not break the node.
func answers(leaf *x509.Certificate, publicKey []byte) bool {
	return bytes.Equal(leaf.RawSubjectPublicKeyInfo, publicKey)
}
