package register

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// ParseNodeIPs reads --node-ip: nothing, one address, or one of each family.
// "0.0.0.0" and "::" stand for the address that the host's default route of
// that family uses. As with the stock kubelet, what is no address is left out
// and returned in ignored.
func ParseNodeIPs(text string) (ips []net.IP, ignored []string, err error) {
	if text == "" {
		return nil, nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if ip := net.ParseIP(part); ip != nil {
			ips = append(ips, ip)
		} else {
			ignored = append(ignored, part)
		}
	}
	switch {
	case len(ips) > 2 || len(ips) == 2 && isIPv4(ips[0]) == isIPv4(ips[1]):
		return nil, ignored, fmt.Errorf("bad --node-ip %q: must contain either a single IP or a dual-stack pair of IPs", text)
	case len(ips) == 2 && (ips[0].IsUnspecified() || ips[1].IsUnspecified()):
		return nil, ignored, fmt.Errorf("bad --node-ip %q: dual-stack node IP cannot include '0.0.0.0' or '::'", text)
	}
	return ips, ignored, nil
}

// CheckNodeIP says in the stock words why an address can not be the node's.
// Host are the addresses of the host's interfaces.
func CheckNodeIP(ip net.IP, host []net.IP) error {
	switch {
	case ip.To16() == nil:
		return errors.New("nodeIP must be a valid IP address")
	case ip.IsLoopback():
		return errors.New("nodeIP can't be loopback address")
	case ip.IsMulticast():
		return errors.New("nodeIP can't be a multicast address")
	case ip.IsLinkLocalUnicast():
		return errors.New("nodeIP can't be a link-local unicast address")
	case ip.IsUnspecified():
		return errors.New("nodeIP can't be an all zeros address")
	case !slices.ContainsFunc(host, ip.Equal):
		return fmt.Errorf("node IP: %q not found in the host's network interfaces", ip.String())
	}
	return nil
}

func isIPv4(ip net.IP) bool { return ip.To4() != nil }
