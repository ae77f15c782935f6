package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kernel keeps chains and rules as "COMMAND TABLE CHAIN [RULE]".
type kernel struct {
	mu      sync.Mutex
	lines   []string
	calls   int
	missing map[string]bool // commands that are not there
	exit    int             // what every command exits with; 0: works
}

func newKernel() *kernel {
	k := &kernel{missing: map[string]bool{}}
	for _, command := range []string{"iptables", "ip6tables"} {
		for _, at := range []string{"nat POSTROUTING", "filter INPUT", "filter OUTPUT"} {
			k.lines = append(k.lines, command+" "+at)
		}
	}
	return k
}

func (k *kernel) Run(_ context.Context, name string, args ...string) (int, []byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	if k.missing[name] {
		return -1, nil, fmt.Errorf("%s: %w", name, exec.ErrNotFound)
	}
	if k.exit != 0 {
		return k.exit, []byte("trouble\n"), nil
	}
	if args[0] != "-w" || args[1] != "5" || args[4] != "-t" {
		return 2, []byte("bad arguments"), nil
	}
	chain := strings.Join([]string{name, args[5], args[3]}, " ")
	rule := strings.Join(append([]string{chain}, args[6:]...), " ")
	has := slices.Contains(k.lines, rule)
	answer := map[bool]int{true: 0, false: 1}
	switch args[2] {
	case "-N":
		if !has {
			k.lines = append(k.lines, chain)
		}
		return answer[!has], nil, nil
	case "-X":
		k.lines = slices.DeleteFunc(k.lines, func(l string) bool { return l == chain })
		return answer[has], nil, nil
	case "-S", "-C":
		return answer[has], nil, nil
	case "-I", "-A":
		if !slices.Contains(k.lines, chain) {
			return 1, []byte("no chain"), nil
		}
		k.lines = append(k.lines, rule)
		return 0, nil, nil
	}
	return 2, []byte("bad operation"), nil
}

func (k *kernel) do(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// made are the lines that were not there at first.
func (k *kernel) made() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(k.lines), func(l string) bool {
		return slices.Contains(newKernel().lines, l)
	})))
}

// all is what is to be made.
func all(canaries bool) []string {
	out := []string{
		"iptables mangle KUBE-IPTABLES-HINT", "ip6tables mangle KUBE-IPTABLES-HINT", "iptables filter KUBE-FIREWALL",
		"iptables filter OUTPUT -j KUBE-FIREWALL", "iptables filter INPUT -j KUBE-FIREWALL",
		"iptables filter KUBE-FIREWALL -m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src 127.0.0.0/8 " +
			"-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
	}
	for _, table := range []string{"mangle", "nat", "filter"} {
		if canaries {
			out = append(out, "iptables "+table+" KUBE-KUBELET-CANARY", "ip6tables "+table+" KUBE-KUBELET-CANARY")
		}
	}
	slices.Sort(out)
	return out
}

func run(t *testing.T, k *kernel, fn func(log func() string)) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		keeper, err := New(Default(), k, slog.New(slog.NewTextHandler(&text, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- keeper.Run(ctx) }()
		synctest.Wait()
		fn(text.String)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestChainsAreMadeAndMadeAgain(t *testing.T) {
	k := newKernel()
	run(t, k, func(func() string) {
		if diff := cmp.Diff(all(true), k.made()); diff != "" {
			t.Error(diff)
		}
		k.do(func() { k.calls = 0 })
		pass(10*time.Minute + time.Second)
		if k.calls != 20 {
			t.Errorf("%d commands in ten quiet minutes, want one a minute for each family", k.calls)
		}
		k.do(func() { k.lines = newKernel().lines })
		pass(time.Minute)
		if diff := cmp.Diff(all(true), k.made()); diff != "" {
			t.Errorf("a minute after a flush: %s", diff)
		}
	})
	if diff := cmp.Diff(all(false), k.made()); diff != "" {
		t.Errorf("after the end: %s", diff)
	}
}

// TestSlowFlush: nothing is made while other tables are still being flushed.
func TestSlowFlush(t *testing.T) {
	k := newKernel()
	run(t, k, func(log func() string) {
		k.do(func() {
			k.lines = slices.DeleteFunc(k.lines, func(l string) bool { return strings.HasPrefix(l, "iptables mangle") })
		})
		pass(time.Minute + 3*time.Second)
		if slices.Contains(k.made(), "iptables mangle KUBE-IPTABLES-HINT") {
			t.Error("made while the flush goes on")
		}
		pass(3 * time.Second)
		if diff := cmp.Diff(all(true), k.made()); diff != "" || !strings.Contains(log(), "Inconsistent iptables state detected") {
			t.Errorf("a flush of one table only: %s", diff)
		}
	})
}

func TestNoIptables(t *testing.T) {
	k := newKernel()
	k.missing["iptables"], k.missing["ip6tables"] = true, true
	run(t, k, func(log func() string) {
		pass(time.Hour)
		if n := strings.Count(log(), "\n"); n != 1 || !strings.Contains(log(), "No iptables support on this system; not creating the KUBE-IPTABLES-HINT chain") {
			t.Errorf("log: %s", log())
		}
	})
	k = newKernel()
	k.missing["ip6tables"] = true
	run(t, k, func(log func() string) {
		if got := k.made(); !slices.Contains(got, "iptables mangle KUBE-IPTABLES-HINT") || strings.Contains(log(), "No iptables") {
			t.Errorf("IPv4 only: %v, log: %s", got, log())
		}
	})
}

// TestTrouble: a lock that is held, or a kernel that refuses, is tried again.
func TestTrouble(t *testing.T) {
	k := newKernel()
	run(t, k, func(log func() string) {
		k.do(func() { k.exit = exitResource })
		pass(10 * time.Minute)
		k.do(func() { k.exit = 0 })
		pass(time.Minute)
		if diff := cmp.Diff(all(true), k.made()); diff != "" || strings.Count(log(), "\n") != 2 {
			t.Errorf("nobody could tell whether there was a flush: %s, log: %s", diff, log())
		}
		k.do(func() {
			k.lines = slices.DeleteFunc(k.lines, func(l string) bool { return strings.Contains(l, "mangle") || strings.Contains(l, "CANARY") })
		})
		pass(30 * time.Second)
		k.do(func() { k.exit = 3 })
		pass(10 * time.Minute)
		if n := strings.Count(log(), "Failed to initialize iptables rules"); n != 2 || !strings.Contains(log(), "exit 3: trouble") {
			t.Errorf("told %d times, once for each family is wanted; log: %s", n, log())
		}
		k.do(func() { k.exit = 0 })
		pass(time.Minute)
		if diff := cmp.Diff(all(true), k.made()); diff != "" {
			t.Errorf("after the trouble: %s", diff)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Config{}, newKernel(), nil); err == nil || !strings.Contains(err.Error(), "Every: 0s must be above 0") {
		t.Error(err)
	}
	if _, err := New(Default(), nil, nil); err == nil {
		t.Error("no runner is fine")
	}
}
