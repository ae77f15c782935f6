// Package nodeobject tests what makes a machine a node of the cluster - its Node
// object, its lease, its events - against a real API server, without an agent
// around it.
package nodeobject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/events"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/register"
	"nodekit.dev/resources"
	"nodekit.dev/resources/machine"
	"nodekit.dev/runtime"
	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/integration/testbed"
)

const name = "node-0"

func startPlane(t *testing.T) *plane.Plane {
	t.Helper()
	programs, err := install.ControlPlane(t.Context(), os.Stderr)
	if err != nil && os.Getenv(testbed.RequireAllEnv) == "" {
		t.Skipf("needs a control plane: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := plane.Start(t.Context(), plane.Options{Dir: filepath.Join(t.TempDir(), "plane"), Programs: programs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := p.Stop(undo); err != nil {
			t.Error(err)
		}
	})
	return p
}

// member is one node: what it reads of its machine may be changed by tests.
type member struct {
	root   *testing.T // for what lives longer than a step
	t      *testing.T
	plane  *plane.Plane
	r      *register.Registrar
	events *events.Recorder
	stop   func()

	mu        sync.Mutex
	runtime   runtime.Status
	addresses []net.IP
	machine   resources.Machine
	cidrs     []string
}

func (m *member) do(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// The host's network: every address is its own, the first is the default.
func (m *member) Addresses() (out []net.IP, err error) {
	m.do(func() { out = m.addresses })
	return out, nil
}

func (m *member) Lookup(context.Context, string) ([]net.IP, error) {
	return nil, errors.New("no such host")
}

func (m *member) Default(context.Context, bool) (ip net.IP, err error) {
	m.do(func() { ip = m.addresses[0] })
	return ip, nil
}

func newMember(t *testing.T, p *plane.Plane) *member {
	facts, err := machine.Read(machine.Host("/var/lib/kubelet"))
	if err != nil {
		t.Fatal(err)
	}
	good := runtime.Condition{Known: true, Ready: true}
	return &member{root: t, t: t, plane: p, machine: facts, addresses: []net.IP{net.ParseIP("10.0.0.5"), net.ParseIP("fd00::5")}, runtime: runtime.Status{
		Name: "containerd", Version: "v2.4.2", RuntimeReady: true, NetworkReady: true, Runtime: good, Network: good,
		Handlers: []runtime.Handler{{Name: "runc", UserNamespaces: true}}, Features: &runtime.Features{SupplementalGroupsPolicy: true},
	}}
}

// start runs the registrar and the recorder as an agent does.
func (m *member) start(change func(*register.Config, *register.Parts)) {
	t := m.root
	kubeconfig, err := m.plane.NodeKubeconfig(name)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	api := apiserver.Default()
	if api.REST, err = apiserver.LoadKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	client, err := apiserver.New(api, log)
	if err != nil {
		t.Fatal(err)
	}
	told := events.Default()
	told.NodeName, told.Log = name, log
	told.NodeUID = m.uid
	if m.events, err = events.New(told, client.Lane(apiserver.LaneEvents).Core()); err != nil {
		t.Fatal(err)
	}
	cfg := register.Default()
	cfg.NodeName, cfg.KubeletVersion = name, "v1.37.2"
	cfg.UpdateEvery, cfg.LeaseDuration = 2*time.Second, 4*time.Second
	parts := register.Parts{
		Core: client.Lane(apiserver.LaneNodeStatus).Core(), Coordination: client.Lane(apiserver.LaneLease).Coordination(),
		Machine: func() (f resources.Machine, err error) { m.do(func() { f = m.machine }); return f, nil },
		Runtime: func() (s runtime.Status) { m.do(func() { s = m.runtime }); return s },
		Network: m,
		PodCIDR: func(_ context.Context, cidrs string) error {
			m.do(func() { m.cidrs = append(m.cidrs, cidrs) })
			return nil
		},
		Event:           m.events.NodeEvent,
		HeartbeatFailed: client.HeartbeatFailed,
		Log:             log,
	}
	change(&cfg, &parts)
	if m.r, err = register.New(cfg, parts); err != nil {
		t.Fatal(err)
	}
	var stops []func() // as an agent does: who writes something at its end, before the connection
	for _, run := range []func(context.Context) error{m.r.Run, m.events.Run, client.Run} {
		ctx, cancel := context.WithCancel(apiserver.Context(t.Context(), log))
		done := make(chan error, 1)
		go func() { done <- run(ctx) }()
		stops = append(stops, func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	m.stop = sync.OnceFunc(func() {
		for _, stop := range stops {
			stop()
		}
	})
	t.Cleanup(m.stop)
}

func (m *member) uid() types.UID { return m.r.UID() }

// get reads an object as the admin.
func (m *member) get(into any, args ...string) error {
	text, err := m.plane.Kubectl(m.t.Context(), append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

func (m *member) node() *corev1.Node {
	var n corev1.Node
	if err := m.get(&n, "get", "node", name); err != nil {
		return nil
	}
	return &n
}

func (m *member) kubectl(args ...string) {
	m.t.Helper()
	if out, err := m.plane.Kubectl(m.t.Context(), args...); err != nil {
		m.t.Fatalf("kubectl %v: %v %s", args, err, out)
	}
}

// eventually asks over and over: kubectl tells of no changes.
func (m *member) eventually(what string, ok func(n *corev1.Node) string) {
	m.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	over := time.After(40 * time.Second)
	why := "no node"
	for {
		if n := m.node(); n != nil {
			if why = ok(n); why == "" {
				return
			}
		}
		select {
		case <-tick.C:
		case <-over:
			m.t.Fatalf("not within 40 s: %s: %s", what, why)
		}
	}
}

func condition(n *corev1.Node, kind string) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if string(c.Type) == kind {
			return c
		}
	}
	return corev1.NodeCondition{Status: "none"}
}

func isReady(n *corev1.Node) string {
	if c := condition(n, "Ready"); c.Status != corev1.ConditionTrue {
		return fmt.Sprintf("Ready is %s: %s", c.Status, c.Message)
	}
	return ""
}

func addresses(n *corev1.Node) string {
	var out []string
	for _, a := range n.Status.Addresses {
		out = append(out, a.Address)
	}
	return strings.Join(out, " ")
}

func wantAddresses(want string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if got := addresses(n); got != want {
			return "addresses " + got
		}
		return ""
	}
}

// TestNodeObject: one control plane for all, since starting it is what takes
// long. The steps build on each other.
func TestNodeObject(t *testing.T) {
	m := newMember(t, startPlane(t))
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"registration", m.registration}, {"others write too", m.othersWriteToo}, {"changes", m.changes}, {"lease", m.lease},
		{"events", m.eventsAreThere}, {"API server away", m.away}, {"restart", m.restart}, {"deletion", m.deletion}, {"forbidden label", m.forbiddenLabel},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			m.t = t
			step.do()
		})
		if !ok {
			return
		}
	}
}

func (m *member) registration() {
	m.do(func() { m.machine.Hugepages = []resources.Hugepages{{Size: 1 << 30, Pages: 1}} })
	m.start(func(c *register.Config, _ *register.Parts) {
		c.Labels = map[string]string{"zone": "z1", "node.kubernetes.io/role": "edge"}
		c.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		c.ProviderID, c.DeclaredFeatures = "test://1", []string{"ExtendWebSocketsToKubelet"}
	})
	m.eventually("the node is ready", isReady)
	n := m.node()
	s := n.Status
	for what, ok := range map[string]bool{
		"labels":            n.Labels["zone"] == "z1" && n.Labels["node.kubernetes.io/role"] == "edge" && n.Labels[corev1.LabelHostname] == name,
		"taints":            slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "dedicated" }),
		"provider":          n.Spec.ProviderID == "test://1",
		"machine":           s.NodeInfo.BootID == m.machine.BootID && s.NodeInfo.ContainerRuntimeVersion == "containerd://2.4.2",
		"capacity":          s.Capacity.Memory().Value() == m.machine.Memory && s.Allocatable.Pods().Value() == 110,
		"huge pages":        s.Allocatable.Name("hugepages-1Gi", "").Value() == 1<<30,
		"handlers":          len(s.RuntimeHandlers) == 1 && *s.RuntimeHandlers[0].Features.UserNamespaces,
		"features":          s.Features != nil && *s.Features.SupplementalGroupsPolicy,
		"declared features": slices.Equal(s.DeclaredFeatures, []string{"ExtendWebSocketsToKubelet"}),
		"endpoint":          s.DaemonEndpoints.KubeletEndpoint.Port == 10250,
		"addresses":         addresses(n) == "10.0.0.5 "+name,
	} {
		if !ok {
			m.t.Errorf("%s: %+v %+v", what, n.ObjectMeta, n.Status)
		}
	}
}

// othersWriteToo: what controllers and operators write stays.
func (m *member) othersWriteToo() {
	m.kubectl("label", "node", name, "operator=was-here")
	m.kubectl("patch", "node", name, "--subresource=status", "--type=strategic",
		"-p", `{"status":{"conditions":[{"type":"KernelDeadlock","status":"False","reason":"Fine"}],"capacity":{"example.com/gpu":"2"}}}`)
	m.do(func() {
		m.runtime.NetworkReady, m.runtime.Network = false, runtime.Condition{Known: true, Reason: "NetworkPluginNotReady", Message: "no CNI"}
	})
	m.r.Kick()
	m.eventually("not ready, with all that others wrote", func(n *corev1.Node) string {
		gpus := n.Status.Allocatable["example.com/gpu"]
		switch c := condition(n, "Ready"); {
		case c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no CNI"):
			return fmt.Sprintf("Ready is %s: %s", c.Status, c.Message)
		case condition(n, "KernelDeadlock").Reason != "Fine" || n.Labels["operator"] != "was-here" || gpus.Value() != 2:
			return fmt.Sprintf("%+v %+v", n.Labels, n.Status)
		}
		return ""
	})
	m.eventually("the runtime knows the pod CIDR that the controllers gave", func(n *corev1.Node) (why string) {
		m.do(func() {
			if len(n.Spec.PodCIDRs) == 0 || !slices.Equal(m.cidrs, n.Spec.PodCIDRs) {
				why = fmt.Sprintf("told %v of %v", m.cidrs, n.Spec.PodCIDRs)
			}
		})
		return why
	})
	m.do(func() {
		m.runtime.NetworkReady, m.runtime.Network.Ready = true, true
	})
	m.r.Kick()
	m.eventually("ready again", isReady)
}

// changes: what goes is gone, and two addresses of one type are two.
func (m *member) changes() {
	m.do(func() { m.addresses[0] = net.ParseIP("10.0.0.6") })
	m.r.Kick()
	m.eventually("another address", wantAddresses("10.0.0.6 "+name))
	m.stop()
	m.do(func() { m.machine.Hugepages = nil })
	m.start(func(c *register.Config, _ *register.Parts) { c.NodeIPs = []net.IP{m.addresses[0], m.addresses[1]} })
	m.eventually("both families", wantAddresses("10.0.0.6 fd00::5 "+name))
	if n := m.node(); n.Status.Capacity.Name("hugepages-1Gi", "").Sign() != 0 || n.Labels["operator"] != "was-here" {
		m.t.Errorf("huge pages that the machine has no longer are told: %+v", n.Status.Capacity)
	}
	m.stop()
	m.start(func(*register.Config, *register.Parts) {})
	m.eventually("one family again", wantAddresses("10.0.0.6 "+name))
}

func (m *member) leaseNow() (l coordinationv1.Lease) {
	if err := m.get(&l, "get", "lease", name, "-n", "kube-node-lease"); err != nil {
		m.t.Error(err)
	}
	return l
}

func (m *member) lease() {
	first := m.leaseNow()
	if o := first.OwnerReferences; len(o) != 1 || o[0].UID != m.r.UID() || *first.Spec.LeaseDurationSeconds != 4 {
		m.t.Errorf("lease %+v", first)
	}
	m.eventually("another sign of life", func(*corev1.Node) string {
		if now := m.leaseNow(); now.Spec.RenewTime.Equal(first.Spec.RenewTime) {
			return "the same"
		}
		return ""
	})
}

func (m *member) eventList() (out []string) {
	var list corev1.EventList
	if err := m.get(&list, "get", "events", "-n", "default"); err != nil {
		m.t.Error(err)
	}
	for _, e := range list.Items {
		if e.Source.Component == "kubelet" && e.Source.Host == name {
			out = append(out, fmt.Sprintf("%s %s %s x%d", e.InvolvedObject.Kind, e.Type, e.Reason, e.Count))
		}
	}
	return out
}

func (m *member) wantEvents(wants ...string) {
	m.t.Helper()
	m.eventually("events", func(*corev1.Node) string {
		has := m.eventList()
		for _, want := range wants {
			if !slices.ContainsFunc(has, func(e string) bool { return strings.HasPrefix(e, want) }) {
				return fmt.Sprintf("no %q among %q", want, has)
			}
		}
		return ""
	})
}

func (m *member) eventsAreThere() {
	pod := node.PodEvent{UID: "u1", Namespace: "default", Name: "web", Event: lifecycle.Event{Type: lifecycle.EventWarning, Reason: "BackOff", Message: "again"}}
	for range 3 {
		m.events.PodEvent(pod)
		m.wantEvents("Pod Warning BackOff")
	}
	m.wantEvents("Node Normal Starting", "Node Normal NodeHasSufficientMemory", "Node Normal NodeNotReady", "Node Normal NodeReady", "Pod Warning BackOff x3")
}

// away: what changed while the API server was away is told soon after.
func (m *member) away() {
	if err := m.plane.KillAPIServer(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	m.do(func() { m.addresses[0] = net.ParseIP("10.0.0.7") })
	m.r.Kick()
	m.events.NodeEvent("Normal", "Meanwhile", "the API server was away")
	if err := m.plane.StartAPIServer(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	m.eventually("what changed meanwhile", wantAddresses("10.0.0.7 "+name))
	m.wantEvents("Node Normal Meanwhile x1")
}

// restart: a ready node stays ready since when it was.
func (m *member) restart() {
	before := condition(m.node(), "Ready")
	m.stop()
	m.start(func(*register.Config, *register.Parts) {})
	m.eventually("a heartbeat of the new agent", func(n *corev1.Node) string {
		if c := condition(n, "Ready"); c.LastHeartbeatTime.Equal(&before.LastHeartbeatTime) {
			return "none"
		} else if !c.LastTransitionTime.Equal(&before.LastTransitionTime) || c.Status != corev1.ConditionTrue {
			m.t.Fatalf("a transition: %+v, before %+v", c, before)
		}
		return ""
	})
}

// deletion: a node that was deleted comes back with a new agent only.
func (m *member) deletion() {
	m.kubectl("delete", "node", name)
	select {
	case <-time.After(5 * time.Second): // two heartbeats and more
	case <-m.t.Context().Done():
	}
	if n := m.node(); n != nil {
		m.t.Errorf("the node is back: %+v", n.ObjectMeta)
	}
	m.stop()
	m.start(func(*register.Config, *register.Parts) {})
	m.eventually("the node of a new agent", isReady)
}

// forbiddenLabel: a vendor may let a label through, the API server does not.
func (m *member) forbiddenLabel() {
	m.stop()
	m.kubectl("delete", "node", name)
	m.start(func(c *register.Config, _ *register.Parts) {
		c.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
		c.AllowLabel = func(string) bool { return true }
	})
	select {
	case <-m.r.Registered():
		m.t.Error("NodeRestriction lets the label through")
	case <-time.After(3 * time.Second):
	}
}
