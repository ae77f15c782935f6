package iptables

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nodekit.dev/internal/command"
	"nodekit.dev/internal/needtest"
)

// host runs the real commands of one flavour in a network namespace of its own.
type host struct {
	t     *testing.T
	enter []string // nsenter and its arguments
	dir   string   // holds iptables and ip6tables
}

func (h host) Run(ctx context.Context, name string, args ...string) (int, []byte, error) {
	all := append(append([]string{}, h.enter[1:]...), append([]string{filepath.Join(h.dir, name)}, args...)...)
	return command.Runner{}.Run(ctx, h.enter[0], all...)
}

// save lists one table as the real command sees it.
func (h host) save(name, table string) string {
	h.t.Helper()
	exit, out, err := h.Run(context.WithoutCancel(h.t.Context()), name, "-w", "5", "-S", "-t", table)
	if exit != 0 || err != nil {
		h.t.Fatalf("%s -S -t %s: exit %d, %v: %s", name, table, exit, err, out)
	}
	return string(out)
}

func (h host) must(name string, args ...string) {
	h.t.Helper()
	if exit, out, err := h.Run(h.t.Context(), name, append([]string{"-w", "5"}, args...)...); exit != 0 || err != nil {
		h.t.Fatalf("%s %v: exit %d, %v: %s", name, args, exit, err, out)
	}
}

// skip says what is missing, or fails where everything is required.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	needtest.SkipOrFail(t, fmt.Sprintf(format, args...))
}

// newHost makes a network namespace whose iptables is the flavour's.
func newHost(t *testing.T, flavour string) host {
	if os.Geteuid() != 0 {
		skip(t, "needs root for a network namespace")
	}
	var tools []string
	for _, name := range []string{"xtables-" + flavour + "-multi", "unshare", "nsenter"} {
		path, err := exec.LookPath(name)
		if err != nil {
			skip(t, "%s is not here: apt-get install iptables util-linux", name)
		}
		tools = append(tools, path)
	}
	h := host{t: t, dir: t.TempDir()}
	for _, name := range []string{"iptables", "ip6tables"} { // the name says what the program is to be
		if err := os.Symlink(tools[0], filepath.Join(h.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	holder := exec.Command(tools[1], "--net", "sh", "-c", "echo; exec sleep 600")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		skip(t, "no network namespace: %v", err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	if n, err := out.Read(make([]byte, 1)); n != 1 {
		skip(t, "no network namespace: %v", err)
	}
	// unshare(1) has become the holder: its namespace is the process's.
	h.enter = []string{tools[2], fmt.Sprintf("--net=/proc/%d/ns/net", holder.Process.Pid), "--"}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, table := range canaryTables() {
			if exit, out, err := h.Run(t.Context(), name, "-w", "5", "-S", "-t", table); exit != 0 || err != nil {
				skip(t, "this kernel has no table %s of the %s %s: %v %s", table, flavour, name, err, out)
			}
		}
	}
	return h
}

// eventually polls, as iptables tells of no changes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	over := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func TestRealIptables(t *testing.T) {
	for _, flavour := range []string{"legacy", "nft"} {
		t.Run(flavour, func(t *testing.T) {
			h := newHost(t, flavour)
			cfg := Default()
			cfg.Every, cfg.FlushWait, cfg.FlushLook = 50*time.Millisecond, 500*time.Millisecond, 20*time.Millisecond
			keeper, err := New(cfg, h, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- keeper.Run(ctx) }()
			made := func() bool {
				for name, tables := range map[string]map[string][]string{
					"iptables": {
						"mangle": {"-N KUBE-IPTABLES-HINT\n", "-N KUBE-KUBELET-CANARY\n"}, "nat": {"-N KUBE-KUBELET-CANARY\n"},
						"filter": {"-N KUBE-KUBELET-CANARY\n", "-N KUBE-FIREWALL\n", "-A INPUT -j KUBE-FIREWALL\n", "-A OUTPUT -j KUBE-FIREWALL\n",
							"-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment \"block incoming localnet connections\" " +
								"-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP\n"},
					},
					"ip6tables": {
						"mangle": {"-N KUBE-IPTABLES-HINT\n", "-N KUBE-KUBELET-CANARY\n"}, "nat": {"-N KUBE-KUBELET-CANARY\n"},
						"filter": {"-N KUBE-KUBELET-CANARY\n"},
					},
				} {
					for table, wants := range tables {
						has := h.save(name, table)
						for _, want := range wants {
							if !strings.Contains(has, want) {
								return false
							}
						}
					}
				}
				return true
			}
			eventually(t, "all chains", made)
			if has := h.save("ip6tables", "filter"); strings.Contains(has, "KUBE-FIREWALL") {
				t.Errorf("IPv6: %s", has)
			}
			for _, name := range []string{"iptables", "ip6tables"} { // a firewall is loaded anew
				for _, table := range canaryTables() {
					h.must(name, "-F", "-t", table)
					h.must(name, "-X", "-t", table)
				}
			}
			eventually(t, "all chains after a flush", made)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run = %v", err)
			}
			for _, table := range canaryTables() {
				if has := h.save("iptables", table); strings.Contains(has, "CANARY") || strings.Count(has, "KUBE-FIREWALL") > 4 {
					t.Errorf("after the end: %s", has)
				}
			}
			if !strings.Contains(h.save("ip6tables", "mangle"), "-N KUBE-IPTABLES-HINT") {
				t.Error("the hint went with the agent")
			}
		})
	}
}
