package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
)

// A bed with a network namespace of its own looks like a machine of its own:
// its node has an address on a cable (a veth pair) to this machine, host ports
// and firewall rules are its own, and its pods are behind it. Pods of two such
// beds reach each other through this machine.

// veth is this machine's end of the cable to the slot's namespace.
func (s *slot) veth() string { return fmt.Sprintf("nkveth%d", s.number) }

// cable is the network of the cable: this machine is its first address, the
// node in the namespace its second.
func (s *slot) cable() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 214, byte(s.number), 0}), 24)
}

// makeNamespace makes the namespace, the cable, and routes both ways.
func (b *Bed) makeNamespace(ctx context.Context) error {
	// Packets between beds pass through this machine.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	ns, veth, bits := b.Namespace, b.slot.veth(), fmt.Sprint("/", b.slot.cable().Bits())
	for _, args := range [][]string{
		{"netns", "add", ns},
		{"link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", ns},
		{"addr", "add", b.MachineIP.String() + bits, "dev", veth},
		{"link", "set", veth, "up"},
		{"-n", ns, "link", "set", "lo", "up"},
		{"-n", ns, "addr", "add", b.NodeIP.String() + bits, "dev", "eth0"},
		{"-n", ns, "link", "set", "eth0", "up"},
		{"-n", ns, "route", "add", "default", "via", b.MachineIP.String()},
		{"route", "add", b.Subnet.String(), "via", b.NodeIP.String()},
	} {
		if _, err := command(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// Command is a command in the bed's network namespace; on a bed without one,
// simply a command.
func (b *Bed) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if b.Namespace == "" {
		return exec.CommandContext(ctx, name, args...)
	}
	return exec.CommandContext(ctx, "nsenter", slices.Concat([]string{"--net=/run/netns/" + b.Namespace, "--", name}, args)...)
}

// removeNamespace removes the cable first: the kernel frees a namespace, with
// its end of the cable, only a moment after it was deleted.
func removeNamespace(ctx context.Context, s *slot) error {
	var errs []error
	if _, err := os.Stat("/sys/class/net/" + s.veth()); err == nil {
		_, err := command(ctx, "ip", "link", "del", s.veth())
		errs = append(errs, err)
	}
	if _, err := os.Stat("/run/netns/" + s.name()); err == nil {
		_, err := command(ctx, "ip", "netns", "del", s.name())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
