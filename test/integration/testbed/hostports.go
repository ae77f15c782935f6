package testbed

import (
	"context"
	"os/exec"
	"slices"
	"strings"
)

// removeHostPorts deletes the rules of CNI's portmap that name the network, and
// the chains that they jump to.
func removeHostPorts(ctx context.Context, network string) error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil // then nobody made a rule
	}
	rules, err := command(ctx, "iptables", "-w", "-t", "nat", "-S")
	if err != nil {
		return err
	}
	restore := portmapDeletions(rules, network)
	if restore == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "iptables-restore", "-w", "--noflush")
	cmd.Stdin = strings.NewReader(restore)
	_, err = run(cmd)
	return err
}

// portmapDeletions turns the output of iptables -S into the input of
// iptables-restore that deletes what portmap made for the network; empty when
// there is nothing.
func portmapDeletions(rules, network string) string {
	var flush, jumps, drop []string
	for line := range strings.Lines(rules) {
		line = strings.TrimSpace(line)
		_, chain, isJump := strings.Cut(line, " -j CNI-DN-")
		if !isJump || !strings.Contains(line, `name: \"`+network+`\"`) {
			continue
		}
		chain = "CNI-DN-" + chain
		jumps = append(jumps, "-D "+strings.TrimPrefix(line, "-A "))
		if flushLine := ":" + chain + " - [0:0]"; !slices.Contains(flush, flushLine) { // one pod, many ports
			flush = append(flush, flushLine)
			drop = append(drop, "-X "+chain)
		}
	}
	if len(jumps) == 0 {
		return ""
	}
	return strings.Join(slices.Concat([]string{"*nat"}, flush, jumps, drop, []string{"COMMIT", ""}), "\n")
}
