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

// recovery is what a dead connection may cost: 30 s of silence, 15 s without an
// answer to a ping.
const recovery = 45 * time.Second

// TestCut drops all packets of the agent's connections to the API server, as a
// firewall does that forgot them; new connections work. The agent must find out
// by itself, and the node stays Ready.
func TestCut(t *testing.T) {
	require(t)
	t.Parallel() // it mostly waits
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	ns := e.namespace(t, "cut")
	n := e.Nodes[0]
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)

	ports := e.cut(t, n)
	t.Logf("cut the connections from the ports %v", ports)
	began := time.Now()
	e.kubectl(t, "-n", ns, "run", "after", "--image="+manifest("BUSYBOX"), "--image-pull-policy=IfNotPresent", "--", "sleep", "10000")
	e.untilPod(t, recovery+10*time.Second, ns, "after", ready)
	took := time.Since(began)
	t.Logf("a pod made after the cut was ready after %v", took.Round(100*time.Millisecond))
	if took > recovery {
		t.Errorf("it took %v to recover, more than %v", took, recovery)
	}
	for _, fault := range e.watch.drain() {
		t.Error(fault)
	}
}

// cut drops the packets of each connection that is now open to the API server,
// both ways, and says from which ports they were.
func (e *env) cut(t *testing.T, n *world.Node) []string {
	t.Helper()
	_, serverPort, _ := strings.Cut(strings.TrimPrefix(e.Plane.Server, "https://"), ":")
	out, err := n.Bed.Command(t.Context(), "ss", "-Htn", "state", "established", "dport = :"+serverPort).Output()
	if err != nil {
		t.Fatal(err)
	}
	var ports []string
	for _, m := range regexp.MustCompile(`:(\d+)\s+\S+:`+serverPort+`\b`).FindAllStringSubmatch(string(out), -1) {
		ports = append(ports, m[1])
		for _, rule := range [][]string{
			{"-I", "OUTPUT", "-p", "tcp", "--sport", m[1], "--dport", serverPort, "-j", "DROP"},
			{"-I", "INPUT", "-p", "tcp", "--dport", m[1], "--sport", serverPort, "-j", "DROP"},
		} {
			if err := iptables(t.Context(), n, rule...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(ports) == 0 {
		t.Fatalf("the agent has no connection to port %s:\n%s", serverPort, out)
	}
	return ports
}

func iptables(ctx context.Context, n *world.Node, args ...string) error {
	out, err := n.Bed.Command(ctx, "iptables", append([]string{"-w"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("iptables %v: %w: %s", args, err, out)
	}
	return nil
}
