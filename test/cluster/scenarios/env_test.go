package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/cluster/follow"
	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/testbed"
)

// patience is how long a thing may take that is not said to be quick. It is
// long because tests run side by side on two cores.
const patience = 2 * time.Minute

// env is a cluster that subtests share: each uses a namespace of its own.
type env struct {
	*world.World
	core  rest.Interface
	pods  *follow.Follower[*corev1.Pod]
	nodes *follow.Follower[*corev1.Node]
	watch *monitor
}

// newWorld starts a cluster without agents, and what watches it.
func newWorld(t *testing.T, o world.Options) *env {
	t.Helper()
	o.Progress = os.Stderr
	w, err := world.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	e := &env{World: w, watch: newMonitor()}
	t.Cleanup(func() {
		if t.Failed() {
			e.keepLogs(t)
		}
		within(t, time.Minute, w.Stop)
	})
	e.core, err = follow.Client(w.Plane.AdminKubeconfig, corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	e.pods = follow.New(e.core, "pods", e.watch.pod)
	e.nodes = follow.New(e.core, "nodes", e.watch.node)
	background(t, e.pods.Run)
	background(t, e.nodes.Run)
	return e
}

// newEnv starts a cluster with an agent on each node, and returns when all
// nodes are Ready. At the end of the test it checks that nothing of any pod is
// left.
func newEnv(t *testing.T, o world.Options, agent world.AgentOptions) *env {
	t.Helper()
	e := newWorld(t, o)
	for _, n := range e.Nodes {
		if err := e.StartAgent(t.Context(), n, agent); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if !t.Failed() {
			e.endsClean(t)
		}
	})
	e.untilNodes(t, patience, e.allReady)
	return e
}

// background runs something until the end of the test, and waits for its end.
func background(t *testing.T, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// within calls do with a time limit, also after the test's own context ended.
func within(t *testing.T, limit time.Duration, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	defer cancel()
	if err := do(ctx); err != nil {
		t.Error(err)
	}
}

// untilNodes waits until check is content with the nodes.
func (e *env) untilNodes(t *testing.T, limit time.Duration, check func([]*corev1.Node) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := e.nodes.Until(ctx, check); err != nil {
		t.Fatalf("%v\n%s", err, e.report())
	}
}

func (e *env) allReady(nodes []*corev1.Node) error {
	if len(nodes) != len(e.Nodes) {
		return fmt.Errorf("%d of %d nodes are registered", len(nodes), len(e.Nodes))
	}
	for _, n := range nodes {
		if c := nodeCondition(n, corev1.NodeReady); c.Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s: Ready is %q: %s: %s", n.Name, c.Status, c.Reason, c.Message)
		}
		// The scheduler still refuses a node until the controllers saw that it is Ready.
		if len(n.Spec.Taints) > 0 {
			return fmt.Errorf("node %s has the taints %v", n.Name, n.Spec.Taints)
		}
	}
	return nil
}

func nodeCondition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{Type: kind}
}

// untilPods waits until check is content with the pods of a namespace; empty:
// all namespaces.
func (e *env) untilPods(t *testing.T, limit time.Duration, namespace string, check func([]*corev1.Pod) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := e.pods.Until(ctx, func(all []*corev1.Pod) error {
		var own []*corev1.Pod
		for _, p := range all {
			if namespace == "" || p.Namespace == namespace {
				own = append(own, p)
			}
		}
		return check(own)
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, e.report())
	}
}

// untilPod waits until a pod is as wanted, and returns it as it is then.
func (e *env) untilPod(t *testing.T, limit time.Duration, namespace, name string, want func(*corev1.Pod) error) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	e.untilPods(t, limit, namespace, func(pods []*corev1.Pod) error {
		for _, p := range pods {
			if p.Name == name {
				found = p
				return want(p)
			}
		}
		return fmt.Errorf("there is no pod %s/%s", namespace, name)
	})
	return found
}

// ready is what most pods should become.
func ready(p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("%s is not ready: %s", p.Name, summary(p))
}

// ended is a pod that ran to its end in that phase.
func ended(phase corev1.PodPhase) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase == phase {
			return nil
		}
		return fmt.Errorf("%s is not %s: %s", p.Name, phase, summary(p))
	}
}

// summary is a pod's status in one line.
func summary(p *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node %q phase %s %s %s", p.Spec.NodeName, p.Status.Phase, p.Status.Reason, p.Status.Message)
	for _, c := range p.Status.ContainerStatuses {
		fmt.Fprintf(&b, "; %s ready=%v restarts=%d", c.Name, c.Ready, c.RestartCount)
		if w := c.State.Waiting; w != nil {
			fmt.Fprintf(&b, " waiting %s %s", w.Reason, w.Message)
		}
		if x := c.State.Terminated; x != nil {
			fmt.Fprintf(&b, " ended %s %d", x.Reason, x.ExitCode)
		}
	}
	if p.DeletionTimestamp != nil {
		fmt.Fprintf(&b, "; deleting since %s", p.DeletionTimestamp)
	}
	return b.String()
}

// kubectl runs kubectl as the admin; that it fails fails the test.
func (e *env) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.Plane.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, e.report())
	}
	return out
}

func (e *env) apply(t *testing.T, objects string) {
	t.Helper()
	if err := e.Plane.Apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
}

// namespace makes a namespace for one case, ready to take pods, and deletes it
// in the end.
func (e *env) namespace(t *testing.T, name string) string {
	t.Helper()
	e.kubectl(t, "create", "namespace", name)
	e.kubectl(t, "-n", name, "wait", "--for=create", "serviceaccount/default", "configmap/kube-root-ca.crt", "--timeout=60s")
	t.Cleanup(func() {
		within(t, patience, func(ctx context.Context) error {
			_, err := e.Plane.Kubectl(ctx, "delete", "namespace", name, "--ignore-not-found", "--timeout=110s")
			return err
		})
	})
	return name
}

// node finds a node by name.
func (e *env) node(t *testing.T, name string) *world.Node {
	t.Helper()
	for _, n := range e.Nodes {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("there is no node %q", name)
	return nil
}

// endsClean deletes all pods and checks that nothing of any is left.
func (e *env) endsClean(t *testing.T) {
	t.Helper()
	within(t, patience, func(ctx context.Context) error {
		_, err := e.Plane.Kubectl(ctx, "delete", "pods", "--all", "--all-namespaces", "--timeout=110s")
		return err
	})
	for _, n := range e.Nodes {
		within(t, time.Minute, func(ctx context.Context) error { return nothingLeft(ctx, n) })
	}
}

// nothingLeft waits until a node's runtime and disk hold nothing of any pod.
func nothingLeft(ctx context.Context, n *world.Node) error {
	return testbed.Eventually(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		return errors.Join(nothingInRuntime(ctx, n), nothingOnDisk(n))
	})
}

func nothingInRuntime(ctx context.Context, n *world.Node) error {
	sandboxes, err := n.Bed.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	containers, err := n.Bed.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	if s, c := len(sandboxes.GetItems()), len(containers.GetContainers()); s+c > 0 {
		return fmt.Errorf("the runtime of %s still has %d sandboxes and %d containers", n.Name, s, c)
	}
	return nil
}

func nothingOnDisk(n *world.Node) error {
	var errs []error
	for _, pattern := range []string{
		filepath.Join(n.Agent.Root, "pods", "*"),
		filepath.Join(n.Bed.PodLogs, "*"),
		"/sys/fs/cgroup/*" + n.Bed.CgroupRoot + "/kubepods/pod*",
		"/sys/fs/cgroup/*" + n.Bed.CgroupRoot + "/kubepods/*/pod*",
		"/sys/fs/cgroup" + n.Bed.CgroupRoot + "/kubepods/pod*",
		"/sys/fs/cgroup" + n.Bed.CgroupRoot + "/kubepods/*/pod*",
	} {
		left, err := filepath.Glob(pattern)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%s: %d left over: %s ...", n.Name, len(left), left[0])
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// eventually asks again until check is content: for what no watch tells.
func (e *env) eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := testbed.Eventually(ctx, 300*time.Millisecond, func(context.Context) error { return check() })
	if err != nil {
		t.Fatalf("%v\n%s", err, e.report())
	}
}
