package register

import (
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
)

// AddressConfig is what a node's addresses depend on.
type AddressConfig struct {
	NodeName      string
	Hostname      string
	NodeIPs       []net.IP // --node-ip; empty: found out
	ExternalCloud bool
}

// specified are the node IPs that name an address, not only a family.
func (c AddressConfig) specified() (out []net.IP) {
	for _, ip := range c.NodeIPs {
		if !ip.IsUnspecified() {
			out = append(out, ip)
		}
	}
	return out
}

// addressSetter sets the addresses by the rules of --node-ip and
// --cloud-provider=external (k/k#107750).
func addressSetter(cfg AddressConfig, network Network) SetterFunc {
	return func(ctx context.Context, n *corev1.Node) error {
		ips := cfg.specified()
		if err := checkAll(ips, network); err != nil {
			return err
		}
		annotateNodeIP(n, cfg.ExternalCloud, ips)
		if cfg.ExternalCloud && len(n.Status.Addresses) > 0 {
			return nil // the cloud controller's, or ours until it comes
		}
		if cfg.ExternalCloud && len(cfg.NodeIPs) == 0 {
			n.Status.Addresses = nodeAddresses(nil, cfg.Hostname)
			return nil
		}
		ips, err := NodeIPs(ctx, cfg, network)
		if err != nil {
			return err
		}
		n.Status.Addresses = nodeAddresses(ips, cfg.Hostname)
		return nil
	}
}

func nodeAddresses(ips []net.IP, hostname string) (out []corev1.NodeAddress) {
	for _, ip := range ips {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	return append(out, corev1.NodeAddress{Type: corev1.NodeHostName, Address: hostname})
}

// annotateNodeIP tells a cloud controller which addresses were asked for, and
// takes an annotation away that holds no longer.
func annotateNodeIP(n *corev1.Node, external bool, ips []net.IP) {
	if !external || len(ips) == 0 {
		delete(n.Annotations, annotationNodeIP)
		return
	}
	text := ips[0].String()
	if len(ips) > 1 {
		text += "," + ips[1].String()
	}
	setAnnotation(n, annotationNodeIP, text)
}

func checkAll(ips []net.IP, network Network) error {
	if len(ips) == 0 {
		return nil
	}
	host, err := network.Addresses()
	if err != nil {
		return err
	}
	for i, ip := range ips {
		if err := CheckNodeIP(ip, host); err != nil {
			return fmt.Errorf("failed to validate %s: %w", [...]string{"nodeIP", "secondaryNodeIP"}[i], err)
		}
	}
	return nil
}

// NodeIPs finds the node's addresses: those of --node-ip; else the hostname if
// it is an address; else what the node's name resolves to; else the address of
// the default route. IPv4 is preferred, unless --node-ip is "::".
func NodeIPs(ctx context.Context, cfg AddressConfig, network Network) ([]net.IP, error) {
	if ips := cfg.specified(); len(ips) > 0 {
		return ips, checkAll(ips, network)
	}
	if ip := net.ParseIP(cfg.Hostname); ip != nil {
		return []net.IP{ip}, nil
	}
	preferIPv6 := len(cfg.NodeIPs) > 0 && !isIPv4(cfg.NodeIPs[0])
	if ip := lookedUp(ctx, cfg.NodeName, preferIPv6, network); ip != nil {
		return []net.IP{ip}, nil
	}
	ip, err := network.Default(ctx, preferIPv6)
	if err != nil {
		return nil, fmt.Errorf("can't get ip address of node %s. error: %w", cfg.NodeName, err)
	}
	return []net.IP{ip}, nil
}

// lookedUp is the first address of the node's name that the host has, of the
// preferred family if there is one.
func lookedUp(ctx context.Context, name string, preferIPv6 bool, network Network) (found net.IP) {
	ips, err := network.Lookup(ctx, name)
	if err != nil {
		return nil // the name need not resolve
	}
	host, err := network.Addresses()
	if err != nil {
		return nil
	}
	for _, ip := range ips {
		switch {
		case CheckNodeIP(ip, host) != nil:
		case isIPv4(ip) != preferIPv6:
			return ip
		case found == nil:
			found = ip
		}
	}
	return found
}
