package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"nodekit.dev/test/cluster/world"
)

// recovery is what dead connections may cost. Pings find one after 30 s of
// silence, and the kernel's patience with what it wrote is 10 s.
const recovery = 45 * time.Second

// TestCut drops all packets of the agent's connections to the API server, as a
// firewall does that forgot them; new connections work. The agent must find out
// by itself, and the node stays Ready: first with one dead connection at a
// time, so that the heartbeats say nothing of the watches' one, then with all.
func TestCut(t *testing.T) {
	require(t)
	t.Parallel() // it mostly waits
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	ns := e.namespace(t, "cut")
	n := e.Nodes[0]
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)

	for _, port := range e.ports(t, n) {
		e.cut(t, n, port)
		e.recovers(t, ns, "after-"+port)
	}
	e.cut(t, n, e.ports(t, n)...)
	e.recovers(t, ns, "after-all")
	for _, fault := range e.watch.drain() {
		t.Error(fault)
	}
}

// recovers says that a pod that is made now runs within recovery.
func (e *env) recovers(t *testing.T, ns, pod string) {
	t.Helper()
	began := time.Now()
	e.kubectl(t, "-n", ns, "run", pod, "--image="+manifest("BUSYBOX"), "--image-pull-policy=IfNotPresent", "--", "sleep", "10000")
	e.untilPod(t, recovery+10*time.Second, ns, pod, ready)
	took := time.Since(began)
	t.Logf("pod %s, made after the cut, was ready after %v", pod, took.Round(100*time.Millisecond))
	if took > recovery {
		t.Errorf("it took %v to recover, more than %v", took, recovery)
	}
}

// ports are those of the agent's connections to the API server.
func (e *env) ports(t *testing.T, n *world.Node) []string {
	t.Helper()
	out, err := n.Bed.Command(t.Context(), "ss", "-Htn", "state", "established", "dport = :"+e.serverPort()).Output()
	if err != nil {
		t.Fatal(err)
	}
	var ports []string
	for _, m := range regexp.MustCompile(`:(\d+)\s+\S+:`+e.serverPort()+`\b`).FindAllStringSubmatch(string(out), -1) {
		ports = append(ports, m[1])
	}
	if len(ports) == 0 {
		t.Fatalf("the agent has no connection to port %s:\n%s", e.serverPort(), out)
	}
	return ports
}

func (e *env) serverPort() string {
	_, port, _ := strings.Cut(strings.TrimPrefix(e.Plane.Server, "https://"), ":")
	return port
}

// cut drops the packets of the connections from ports to the API server, both
// ways.
func (e *env) cut(t *testing.T, n *world.Node, ports ...string) {
	t.Helper()
	t.Logf("cutting the connections from the ports %v", ports)
	for _, port := range ports {
		for _, rule := range [][]string{
			{"-I", "OUTPUT", "-p", "tcp", "--sport", port, "--dport", e.serverPort(), "-j", "DROP"},
			{"-I", "INPUT", "-p", "tcp", "--dport", port, "--sport", e.serverPort(), "-j", "DROP"},
		} {
			if err := iptables(t.Context(), n, rule...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func iptables(ctx context.Context, n *world.Node, args ...string) error {
	out, err := n.Bed.Command(ctx, "iptables", append([]string{"-w"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("iptables %v: %w: %s", args, err, out)
	}
	return nil
}
