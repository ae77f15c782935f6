package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
)

// nodeIPs reads --node-ip, or finds the address that the host talks to others
// with.
func nodeIPs(ctx context.Context, flag string) ([]string, error) {
	if flag == "" {
		return hostIP(ctx, "ip4", "ip6")
	}
	var ips []net.IP
	for part := range strings.SplitSeq(flag, ",") {
		ip := net.ParseIP(strings.TrimSpace(part))
		if err := checkNodeIP(ip); err != nil {
			return nil, fmt.Errorf("bad --node-ip %q: %w", flag, err)
		}
		ips = append(ips, ip)
	}
	switch {
	case len(ips) > 2 || len(ips) == 2 && isIPv4(ips[0]) == isIPv4(ips[1]):
		return nil, fmt.Errorf("bad --node-ip %q: must contain either a single IP or a dual-stack pair of IPs", flag)
	case len(ips) == 2 && (ips[0].IsUnspecified() || ips[1].IsUnspecified()):
		return nil, fmt.Errorf("bad --node-ip %q: dual-stack pair cannot include '0.0.0.0' or '::'", flag)
	case ips[0].IsUnspecified() && isIPv4(ips[0]):
		return hostIP(ctx, "ip4", "ip6")
	case ips[0].IsUnspecified():
		return hostIP(ctx, "ip6", "ip4")
	}
	return texts(ips), nil
}

// followIPs looks for the node's addresses now and then, and says between what
// it found last; one goroutine at a time may ask. Where there are none yet, it
// looks each time.
func followIPs(flag string, every time.Duration, look func(context.Context, string) ([]string, error), log *slog.Logger) func(context.Context) []string {
	var found []string
	var at time.Time
	return func(ctx context.Context) []string {
		if len(found) > 0 && time.Since(at) < every {
			return found
		}
		ips, err := look(ctx, flag)
		if err != nil {
			log.Debug("the node's addresses can not be found", "err", err)
		}
		found, at = ips, time.Now()
		return found
	}
}

// checkNodeIP has the stock kubelet's words.
func checkNodeIP(ip net.IP) error {
	switch {
	case ip == nil:
		return errors.New("nodeIP must be a valid IP address")
	case ip.IsLoopback():
		return errors.New("nodeIP can't be loopback address")
	case ip.IsMulticast():
		return errors.New("nodeIP can't be a multicast address")
	case ip.IsLinkLocalUnicast():
		return errors.New("nodeIP can't be a link-local unicast address")
	}
	return nil
}

// hostIP is the host's address of the first family that has one: the one that
// the default route uses, else the first of an interface. A host without a
// network has none, and its pods run all the same.
func hostIP(ctx context.Context, families ...string) ([]string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of the host: %w", err)
	}
	for _, family := range families {
		if ip := routedIP(ctx, family); ip != nil {
			return texts([]net.IP{ip}), nil
		}
		if ip := firstIP(addrs, family); ip != nil {
			return texts([]net.IP{ip}), nil
		}
	}
	return nil, nil
}

// routedIP asks the kernel which address it would send from; connecting a UDP
// socket sends nothing. The target is an address of no one (RFC 5737, 3849).
func routedIP(ctx context.Context, family string) net.IP {
	network, target := "udp4", "192.0.2.1:9"
	if family == "ip6" {
		network, target = "udp6", "[2001:db8::1]:9"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, target)
	if err != nil {
		return nil // no default route of that family
	}
	defer conn.Close()
	addr, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok || !addr.IP.IsGlobalUnicast() {
		return nil
	}
	return addr.IP
}

func firstIP(addrs []net.Addr, family string) net.IP {
	for _, a := range addrs {
		ipnet, ok := a.(*net.IPNet)
		if ok && ipnet.IP.IsGlobalUnicast() && isIPv4(ipnet.IP) == (family == "ip4") {
			return ipnet.IP
		}
	}
	return nil
}

func isIPv4(ip net.IP) bool { return ip.To4() != nil }

func texts(ips []net.IP) []string {
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = ip.String()
	}
	return out
}
