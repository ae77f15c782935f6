package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// The chains, under their stock names.
const (
	hintChain     = "KUBE-IPTABLES-HINT"
	firewallChain = "KUBE-FIREWALL"
	canaryChain   = "KUBE-KUBELET-CANARY"
)

// What iptables says by its exit code.
const (
	exitNo       = 1 // no such rule or chain, or there is one already
	exitResource = 4 // the lock or the kernel did not let it look
)

// lockWait is how many seconds a command waits for the lock of iptables.
const lockWait = "5"

// canaryTables are watched for a flush. The first is looked at over and over:
// it has the fewest rules to list.
func canaryTables() []string { return []string{"mangle", "nat", "filter"} }

// family is one of the two protocols.
type family struct {
	command  string
	protocol string
	firewall bool // IPv6 does not route packets to loopback in the first place
}

// tables are those of one family.
type tables struct {
	family
	runner  Runner
	timeout time.Duration
}

// run gives the exit code; err says what a code that is not among fine means.
func (t tables) run(ctx context.Context, fine []int, args ...string) (exit int, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	exit, output, err := t.runner.Run(ctx, t.command, append([]string{"-w", lockWait}, args...)...)
	if err != nil {
		return exit, err
	}
	for _, code := range fine {
		if exit == code {
			return exit, nil
		}
	}
	return exit, fmt.Errorf("%s %v: exit %d: %s", t.command, args, exit, bytes.TrimSpace(output))
}

// present says why the family can not be used.
func (t tables) present(ctx context.Context) error {
	_, err := t.run(ctx, []int{0}, "-S", "POSTROUTING", "-t", "nat")
	return err
}

// ensure makes the chains and rules that are missing.
func (t tables) ensure(ctx context.Context) error {
	if err := t.ensureChain(ctx, "mangle", hintChain); err != nil {
		return err
	}
	if !t.firewall {
		return nil
	}
	if err := t.ensureChain(ctx, "filter", firewallChain); err != nil {
		return err
	}
	for _, from := range []string{"OUTPUT", "INPUT"} {
		if err := t.ensureRule(ctx, "-I", from, "-j", firewallChain); err != nil {
			return err
		}
	}
	// kube-proxy makes an equal rule: a change here has to fit the one there.
	return t.ensureRule(ctx, "-A", firewallChain, "-m", "comment", "--comment", "block incoming localnet connections",
		"--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8",
		"-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP")
}

func (t tables) ensureChain(ctx context.Context, table, chain string) error {
	_, err := t.run(ctx, []int{0, exitNo}, "-N", chain, "-t", table)
	return err
}

// ensureRule looks for the rule in the table filter and puts it first ("-I") or
// last ("-A") where it is missing.
func (t tables) ensureRule(ctx context.Context, where, chain string, rule ...string) error {
	at := append([]string{chain, "-t", "filter"}, rule...)
	exit, err := t.run(ctx, []int{0, exitNo}, append([]string{"-C"}, at...)...)
	if err != nil || exit == 0 {
		return err
	}
	_, err = t.run(ctx, []int{0}, append([]string{where}, at...)...)
	return err
}

func (t tables) ensureCanaries(ctx context.Context) error {
	var errs []error
	for _, table := range canaryTables() {
		errs = append(errs, t.ensureChain(ctx, table, canaryChain))
	}
	return errors.Join(errs...)
}

func (t tables) deleteCanaries(ctx context.Context) error {
	var errs []error
	for _, table := range canaryTables() {
		_, err := t.run(ctx, []int{0, exitNo}, "-X", canaryChain, "-t", table)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hasCanary is true as well when nobody can tell: no flush is seen then.
func (t tables) hasCanary(ctx context.Context, table string) bool {
	exit, err := t.run(ctx, []int{0, exitResource}, "-S", canaryChain, "-t", table)
	return err == nil || exit < 0
}
