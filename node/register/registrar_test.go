package register

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"nodekit.dev/node"
	"nodekit.dev/resources"
	"nodekit.dev/runtime"
)

// bench is a registrar with an API server and a machine in memory.
type bench struct {
	t   *testing.T
	api *api
	cfg Config
	r   *Registrar

	mu       sync.Mutex
	runtime  runtime.Status
	machine  resources.Machine
	pressure Pressure
	events   []string
	cidrs    []string
	cidrErr  error
	failed   int // HeartbeatFailed
	log      strings.Builder
}

func newBench(t *testing.T) *bench {
	good := runtime.Condition{Known: true, Ready: true}
	b := &bench{
		t: t, api: newAPI(t), cfg: Default(),
		machine: resources.Machine{MachineID: "m", SystemUUID: "s", BootID: "b", KernelVersion: "6.1", OSImage: "Test", CPUs: 2, Memory: 4 << 30, Storage: 10 << 30},
		runtime: runtime.Status{
			Name: "containerd", Version: "v2.4.2", RuntimeReady: true, NetworkReady: true, Runtime: good, Network: good,
			Handlers: []runtime.Handler{{Name: "", RecursiveReadOnlyMounts: true}, {Name: "runc", UserNamespaces: true}},
			Features: &runtime.Features{SupplementalGroupsPolicy: true},
		},
	}
	b.cfg.NodeName, b.cfg.KubeletVersion = "n1", "v1.37.2"
	return b
}

func (b *bench) do(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *bench) parts() Parts {
	return Parts{
		Core: b.api.core(), Coordination: b.api.coordination(),
		Machine: func() (m resources.Machine, err error) { b.do(func() { m = b.machine }); return m, nil },
		Runtime: func() (s runtime.Status) {
			b.do(func() {
				if b.runtime.RuntimeReady {
					b.runtime.ReadyAt = time.Now()
				}
				s = b.runtime
			})
			return s
		},
		Images: func(context.Context) ([]runtime.ImageInfo, error) {
			return []runtime.ImageInfo{{ID: "small", Size: 1, RepoTags: []string{"small:1"}}, {ID: "big", Size: 9, RepoTags: []string{"big:1"}}}, nil
		},
		Pressure: func() (p Pressure) { b.do(func() { p = b.pressure }); return p },
		Network:  network{host: []string{"10.0.0.5"}, v4: "10.0.0.5"},
		PodCIDR: func(_ context.Context, cidrs string) (err error) {
			b.do(func() { b.cidrs, err = append(b.cidrs, cidrs), b.cidrErr })
			return err
		},
		Event:           func(kind, reason, _ string) { b.do(func() { b.events = append(b.events, kind+" "+reason) }) },
		HeartbeatFailed: func() { b.do(func() { b.failed++ }) },
		Log:             slog.New(slog.NewTextHandler(lockedWriter{b}, nil)),
	}
}

type lockedWriter struct{ b *bench }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	return w.b.log.Write(p)
}

// run lets the registrar live in a bubble while fn acts.
func (b *bench) run(fn func(), change ...func(*Parts)) {
	synctest.Test(b.t, func(t *testing.T) {
		parts := b.parts()
		for _, c := range change {
			c(&parts)
		}
		var err error
		if b.r, err = New(b.cfg, parts); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.r.Run(ctx) }()
		synctest.Wait()
		fn()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}

func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (b *bench) failures() (n int) { b.do(func() { n = b.failed }); return n }

func (b *bench) logged() (text string) { b.do(func() { text = b.log.String() }); return text }

func (b *bench) wantEvents(when string, want ...string) {
	b.t.Helper()
	b.do(func() {
		if diff := cmp.Diff(want, b.events); diff != "" {
			b.t.Errorf("%s: %s", when, diff)
		}
		b.events = nil
	})
}

func ready(n *corev1.Node) string {
	i := indexOf(n.Status.Conditions, corev1.NodeReady)
	return string(n.Status.Conditions[i].Status) + " " + n.Status.Conditions[i].Message
}

func TestNewNode(t *testing.T) {
	b := newBench(t)
	b.cfg.Labels = map[string]string{"zone": "z1", "node.kubernetes.io/role": "edge"}
	b.cfg.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: "NoSchedule"}}
	b.cfg.ProviderID, b.cfg.DeclaredFeatures = "cloud://1", []string{"A", "B"}
	b.cfg.Reserved.System = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	b.run(func() {
		n := b.api.now()
		want := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "cloud://1", Taints: b.cfg.Taints}}
		if diff := cmp.Diff(want.Spec, n.Spec); diff != "" {
			t.Errorf("spec %s", diff)
		}
		labels := stockLabels("n1")
		labels["zone"], labels["node.kubernetes.io/role"] = "z1", "edge"
		if diff := cmp.Diff(labels, n.Labels); diff != "" {
			t.Errorf("labels %s", diff)
		}
		if diff := cmp.Diff(map[string]string{annotationAttach: "true"}, n.Annotations); diff != "" {
			t.Errorf("annotations %s", diff)
		}
		var kinds []string
		for _, c := range n.Status.Conditions {
			kinds = append(kinds, string(c.Type)+"="+string(c.Status))
		}
		if got := strings.Join(kinds, " "); got != "MemoryPressure=False DiskPressure=False PIDPressure=False Ready=True" {
			t.Errorf("conditions %s", got)
		}
		s, yes, no := n.Status, true, false
		s.Conditions = nil
		wantStatus := corev1.NodeStatus{
			Capacity:        resources.Capacity(b.machine, b.cfg.Pods),
			Allocatable:     resources.Allocatable(resources.Capacity(b.machine, b.cfg.Pods), b.cfg.Reserved.System),
			Addresses:       []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.5"}, {Type: "Hostname", Address: "n1"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: "m", SystemUUID: "s", BootID: "b", KernelVersion: "6.1", OSImage: "Test", ContainerRuntimeVersion: "containerd://2.4.2",
				KubeletVersion: "v1.37.2", OperatingSystem: n.Labels[corev1.LabelOSStable], Architecture: n.Labels[corev1.LabelArchStable],
				RunningInUserNamespace: &no,
			},
			Images: []corev1.ContainerImage{{Names: []string{"big:1"}, SizeBytes: 9}, {Names: []string{"small:1"}, SizeBytes: 1}},
			RuntimeHandlers: []corev1.NodeRuntimeHandler{
				{Name: "", Features: &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &yes, UserNamespaces: &no}},
				{Name: "runc", Features: &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &no, UserNamespaces: &yes}},
			},
			Features:         &corev1.NodeFeatures{SupplementalGroupsPolicy: &yes},
			DeclaredFeatures: []string{"A", "B"},
		}
		if diff := cmp.Diff(wantStatus, s); diff != "" {
			t.Errorf("status %s", diff)
		}
		b.wantEvents("registered", "Normal Starting", "Normal NodeHasSufficientMemory", "Normal NodeHasNoDiskPressure", "Normal NodeHasSufficientPID")
		if got := b.r.Node(); got.UID != n.UID || b.r.UID() != n.UID || !slices.Equal(b.r.HostIPs(), []string{"10.0.0.5"}) {
			t.Errorf("the registrar knows %v, UID %v, IPs %v", got.UID, b.r.UID(), b.r.HostIPs())
		}
		<-b.r.Registered()
	})
}

// TestQuietNode: a node that does not change is told every five minutes only.
func TestQuietNode(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.pass(149 * time.Second)
		if n := b.api.count("PATCH"); n != 0 {
			t.Errorf("%d patches in the shortest time between two: %v", n, b.api.patches)
		}
		b.pass(time.Hour)
		if n := b.api.count("PATCH"); n < 11 || n > 13 {
			t.Errorf("%d patches in an hour", n)
		}
		beat := b.api.now().Status.Conditions[0].LastHeartbeatTime
		if ago := time.Since(beat.Time); ago > 6*time.Minute {
			t.Errorf("the last heartbeat is %v old", ago)
		}
		b.events = nil
	})
}

func TestChangesAreToldAtOnce(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.events = nil
		began := time.Now()
		b.do(func() {
			b.runtime.NetworkReady, b.runtime.Network = false, runtime.Condition{Known: true, Reason: "NetworkPluginNotReady", Message: "no CNI"}
			b.pressure.Memory = true
		})
		b.r.Kick()
		synctest.Wait()
		if got := ready(b.api.now()); got != "False container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no CNI" || time.Since(began) != 0 {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
		b.wantEvents("no network", "Normal NodeHasInsufficientMemory", "Normal NodeNotReady")
		b.do(func() { b.runtime.NetworkReady, b.runtime.Network.Ready = true, true })
		b.r.Kick()
		synctest.Wait()
		b.wantEvents("network", "Normal NodeReady")
	})
}

// TestChangeWhoseAnswerIsLostIsTold: the API server took it, and so the next try
// finds nothing to change.
func TestChangeWhoseAnswerIsLostIsTold(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.events = nil
		lost := false
		b.api.do(func() {
			b.api.lose = func(call string) error {
				if lost || !strings.HasPrefix(call, "PATCH nodes") {
					return nil
				}
				lost = true
				return errors.New("connection reset by peer")
			}
		})
		b.do(func() {
			b.runtime.NetworkReady, b.runtime.Network = false, runtime.Condition{Known: true, Reason: "NetworkPluginNotReady", Message: "no CNI"}
		})
		b.r.Kick()
		b.pass(time.Second)
		b.wantEvents("no network", "Normal NodeNotReady")
	})
}

// TestSilentRuntime: the node is ready until the grace is over, and not ready
// then, without a kick.
func TestSilentRuntime(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.do(func() { b.runtime.RuntimeReady = false }) // silent: the condition stays
		b.r.Kick()
		b.pass(29 * time.Second)
		if got := ready(b.api.now()); !strings.HasPrefix(got, "True") {
			t.Errorf("in its grace: %s", got)
		}
		b.pass(time.Second + time.Millisecond)
		if got := ready(b.api.now()); got != "False container runtime is down" {
			t.Errorf("after its grace: %s", got)
		}
		b.do(func() { b.runtime.RuntimeReady = true })
		b.r.Kick()
		synctest.Wait()
		if got := ready(b.api.now()); !strings.HasPrefix(got, "True") {
			t.Errorf("back: %s", got)
		}
	})
}

// TestRestart: an agent that starts again while the runtime is not read yet
// keeps a ready node ready, with the transition of before.
func TestRestart(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.api.do(func() { b.api.node.Labels["kept"], b.api.node.Labels[corev1.LabelHostname] = "yes", "old" })
		b.api.do(func() { b.api.node.Status.Capacity["hugepages-1Gi"] = resource.MustParse("1Gi") })
		b.api.do(func() { b.api.node.Status.Capacity["example.com/gpu"] = resource.MustParse("2") })
	})
	since := b.api.now().Status.Conditions[3].LastTransitionTime
	up := b.runtime
	b.do(func() { b.runtime, b.events = runtime.Status{}, nil })
	b.cfg.Labels = map[string]string{"new": "label"}
	b.cfg.StartWarnings = []Warning{{Reason: "CgroupV1", Message: "it ends"}}
	b.run(func() {
		if n := b.api.count("PATCH"); n != 0 {
			t.Fatalf("%d patches before the runtime was read", n)
		}
		if !strings.HasPrefix(ready(b.r.Node()), "False") || b.r.UID() != "" {
			t.Errorf("before the API server: %s, %v", ready(b.r.Node()), b.r.UID())
		}
		b.pass(time.Second)
		b.do(func() { b.runtime = up })
		b.r.Kick()
		synctest.Wait()
		n := b.api.now()
		if got := ready(n); !strings.HasPrefix(got, "True") || !n.Status.Conditions[3].LastTransitionTime.Equal(&since) {
			t.Errorf("%s since %v, was %v", got, n.Status.Conditions[3].LastTransitionTime, since)
		}
		if n.Labels["kept"] != "yes" || n.Labels[corev1.LabelHostname] != "n1" || n.Labels["new"] != "" {
			t.Errorf("labels %v", n.Labels)
		}
		if _, has := n.Status.Capacity["hugepages-1Gi"]; has {
			t.Error("huge pages that the machine has no longer are still told")
		}
		if gpus := n.Status.Allocatable["example.com/gpu"]; gpus.Value() != 2 {
			t.Errorf("what others told of the node: allocatable %v", n.Status.Allocatable)
		}
		b.wantEvents("restart", "Normal Starting", "Warning CgroupV1")
	})
}

func TestSilentRuntimeAtStartIsNotWaitedForForEver(t *testing.T) {
	b := newBench(t)
	b.runtime = runtime.Status{}
	b.run(func() {
		b.pass(5 * time.Second)
		if got := ready(b.api.now()); got != "False [container runtime status check may not have completed yet, network state unknown]" {
			t.Error(got)
		}
	})
}

func TestReboot(t *testing.T) {
	b := newBench(t)
	b.run(func() {})
	b.machine.BootID, b.events = "b2", nil
	b.run(func() {
		b.pass(time.Minute)
		b.wantEvents("rebooted", "Normal Starting", "Warning Rebooted")
	})
}

func TestCordon(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.events = nil
		b.api.do(func() { b.api.node.Spec.Unschedulable = true })
		b.pass(11 * time.Second)
		b.wantEvents("cordoned", "Normal NodeNotSchedulable")
		b.api.do(func() { b.api.node.Spec.Unschedulable = false })
		b.pass(11 * time.Second)
		b.wantEvents("uncordoned", "Normal NodeSchedulable")
	})
}

func TestPodCIDR(t *testing.T) {
	b := newBench(t)
	b.cidrErr = errors.New("not now")
	b.run(func() {
		b.pass(11 * time.Second)
		if b.cidrs != nil {
			t.Errorf("told %v before there is one", b.cidrs)
		}
		b.api.do(func() { b.api.node.Spec.PodCIDRs = []string{"10.1.0.0/24", "fd00::/64"} })
		b.r.Kick()
		synctest.Wait()
		b.do(func() { b.cidrErr = nil })
		b.pass(time.Minute)
		b.mu.Lock()
		defer b.mu.Unlock()
		if want := []string{"10.1.0.0/24,fd00::/64", "10.1.0.0/24,fd00::/64"}; !slices.Equal(b.cidrs, want) {
			t.Errorf("told %v, want once in vain and once more", b.cidrs)
		}
	})
}

// TestDeletedNode stays deleted, and so does its lease, until the agent starts again.
func TestDeletedNode(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.api.do(func() { b.api.node, b.api.lease, b.api.calls = nil, nil, nil })
		b.pass(time.Minute)
		if b.api.now() != nil || b.api.leaseNow() != nil {
			t.Errorf("node %v, lease %v", b.api.now(), b.api.leaseNow())
		}
		if n := b.api.count("GET nodes"); n < 5 || n > 15 || !strings.Contains(b.logged(), "was deleted") {
			t.Errorf("%d reads of the node in a minute; log: %s", n, b.logged())
		}
	})
}

// TestRegisterNodeFalse fills in the status of a Node that others make.
func TestRegisterNodeFalse(t *testing.T) {
	b := newBench(t)
	b.cfg.Register, b.cfg.Labels = false, map[string]string{"mine": "1"}
	b.run(func() {
		b.pass(time.Minute)
		if b.api.count("POST") > 0 {
			t.Errorf("calls %v", b.api.calls)
		}
		select {
		case <-b.r.Registered():
			t.Error("registered without a Node")
		default:
		}
		b.api.do(func() {
			b.api.node = &corev1.Node{}
			b.api.node.Kind, b.api.node.APIVersion, b.api.node.Name, b.api.node.UID = "Node", "v1", "n1", "theirs"
			b.api.node.ResourceVersion = "5"
		})
		b.pass(11 * time.Second)
		n := b.api.now()
		if !strings.HasPrefix(ready(n), "True") || n.Labels["mine"] != "" || n.Labels[corev1.LabelOSStable] == "" || b.api.leaseNow() == nil {
			t.Errorf("node %+v, lease %v", n, b.api.leaseNow())
		}
	})
}

func TestForbiddenToCreate(t *testing.T) {
	forbid := func(call string) error {
		if call == "POST nodes" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no"))
		}
		return nil
	}
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprint("strict ", strict), func(t *testing.T) {
			b := newBench(t)
			b.run(func() {}) // the node is there
			b.api.fail, b.cfg.NoGetWhenForbidden = forbid, strict
			b.run(func() {
				b.pass(time.Second)
				select {
				case <-b.r.Registered():
					if strict {
						t.Error("registered")
					}
				default:
					if !strict {
						t.Errorf("not registered: %s", b.logged())
					}
				}
				if strict && !strings.Contains(b.logged(), "system:node:NAME") {
					t.Errorf("the log does not say what to do: %s", b.logged())
				}
			})
		})
	}
}

func TestNewRefuses(t *testing.T) {
	b := newBench(t)
	for want, change := range map[string]func(*Config, *Parts){
		"NodeName: must not be empty":          func(c *Config, _ *Parts) { c.NodeName = "" },
		"UpdateEvery: 0s must be at least 1ms": func(c *Config, _ *Parts) { c.UpdateEvery = 0 },
		"at most one of each family":           func(c *Config, _ *Parts) { c.NodeIPs = ips("10.0.0.1", "10.0.0.2", "10.0.0.3") },
		"node labels: unknown 'kubernetes.io'": func(c *Config, _ *Parts) { c.Labels = map[string]string{"kubernetes.io/x": ""} },
		"Core is missing":                      func(_ *Config, p *Parts) { p.Core = nil },
		"Machine is missing":                   func(_ *Config, p *Parts) { p.Machine = nil },
		`"a" comes after "nobody"`:             func(_ *Config, p *Parts) { p.Setters = []node.Ordered[Setter]{{Name: "a", After: []string{"nobody"}}} },
	} {
		cfg, parts := b.cfg, b.parts()
		change(&cfg, &parts)
		if _, err := New(cfg, parts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	r, err := New(b.cfg, b.parts())
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Node(); n.Name != "n1" || n.Labels[corev1.LabelHostname] != "n1" || r.HostIPs() != nil {
		t.Errorf("before Run: %+v", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Run was called before") {
		t.Error(err)
	}
}
