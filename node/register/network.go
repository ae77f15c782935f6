package register

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Network finds the addresses of the host. Its methods may block until ctx
// ends and may be called concurrently.
type Network interface {
	// Addresses are those of all interfaces.
	Addresses() ([]net.IP, error)
	// Lookup resolves a name.
	Lookup(ctx context.Context, name string) ([]net.IP, error)
	// Default is the address that the host's default route uses, of the family
	// that is preferred if it has one.
	Default(ctx context.Context, preferIPv6 bool) (net.IP, error)
}

// lookupTime bounds one question to the resolver, which may have no server that
// answers.
const lookupTime = 2 * time.Second

// HostNetwork is this host's network.
type HostNetwork struct{}

// Addresses implements Network.
func (HostNetwork) Addresses() ([]net.IP, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of the host: %w", err)
	}
	var out []net.IP
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			out = append(out, n.IP)
		}
	}
	return out, nil
}

// Lookup implements Network.
func (HostNetwork) Lookup(ctx context.Context, name string) ([]net.IP, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	return net.DefaultResolver.LookupIP(ctx, "ip", name)
}

// Default implements Network: the address that the default route uses, else the
// first global one of an interface.
func (h HostNetwork) Default(ctx context.Context, preferIPv6 bool) (net.IP, error) {
	all, err := h.Addresses()
	if err != nil {
		return nil, err
	}
	families := []bool{true, false} // is it IPv4
	if preferIPv6 {
		families = []bool{false, true}
	}
	for _, v4 := range families {
		if ip := routed(ctx, v4); ip != nil {
			return ip, nil
		}
	}
	for _, v4 := range families {
		for _, ip := range all {
			if ip.IsGlobalUnicast() && isIPv4(ip) == v4 {
				return ip, nil
			}
		}
	}
	return nil, fmt.Errorf("none of the host's %d addresses can be reached from outside; set --node-ip", len(all))
}

// routed asks the kernel which address it would send from; connecting a UDP
// socket sends nothing. The target is an address of no one (RFC 5737, 3849).
func routed(ctx context.Context, v4 bool) net.IP {
	network, target := "udp6", "[2001:db8::1]:9"
	if v4 {
		network, target = "udp4", "192.0.2.1:9"
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
