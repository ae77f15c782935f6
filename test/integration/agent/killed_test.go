package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/testbed"
)

const (
	steadyPods = 10 // are never touched, and so must never notice anything
	churnPods  = 10 // are changed, removed and added all the time
)

func killRounds() int {
	if soaking {
		return 50
	}
	return 5
}

// TestKilled kills the agent with SIGKILL amid churn, again and again: no
// container is restarted, none doubled, none lost, and nothing is left over.
func TestKilled(t *testing.T) {
	t.Parallel()
	eachContainerd(t, func(t *testing.T, version string) {
		e := newEnv(t, version)
		c := newChurn(t, e)
		c.startSteady(t)
		stop := c.watchDoubles(t)
		for round := range killRounds() {
			c.round(t, round)
		}
		c.settle(t)
		stop()
		c.checkStarts(t)
		c.checkSteady(t)
		c.removeAll(t)
		within(t, 2*time.Minute, e.nothingLeft)
	})
}

// churn changes manifests at random, and knows what should be there.
type churn struct {
	*env
	random *rand.Rand
	trace  string
	steady map[string]string // container ID by pod
	// generation of each churning pod; 0 while it is removed. Each content is
	// used once, so that each UID means one start of its container.
	wanted map[string]int
	used   int
}

func newChurn(t *testing.T, e *env) *churn {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &churn{
		env: e, random: rand.New(rand.NewPCG(seed, 0)), trace: podFolder(t),
		steady: map[string]string{}, wanted: map[string]int{},
	}
}

// starts is a script that shows any restart: it writes its pod's UID down when
// it begins, and again when it is up.
const starts = `
	echo $UID begins >> /trace/starts
	(sleep 2; echo $UID up >> /trace/starts) &
	` + untilTerm

// pod is one version of a pod.
func (c *churn) pod(name string, generation int) *corev1.Pod {
	main := shell("main", starts)
	main.Env = []corev1.EnvVar{
		{Name: "UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}},
		{Name: "GENERATION", Value: fmt.Sprint(generation)},
	}
	main.VolumeMounts = []corev1.VolumeMount{{Name: "trace", MountPath: "/trace"}, {Name: "data", MountPath: "/data"}}
	pod := newPod(name, main)
	pod.Spec.Volumes = []corev1.Volume{hostVolume("trace", c.trace, corev1.HostPathDirectory), emptyVolume("data")}
	pod.Spec.TerminationGracePeriodSeconds = ptr(int64(2))
	return pod
}

func (c *churn) startSteady(t *testing.T) {
	t.Helper()
	for i := range steadyPods {
		c.apply(t, c.pod(fmt.Sprintf("steady-%d", i), 0))
	}
	for i := range steadyPods {
		name := fmt.Sprintf("steady-%d", i)
		status, _ := statusOf(c.until(t, name, ready), "main")
		c.steady[name] = status.ContainerID
	}
}

// round sees one change through to the end, so that every round shows
// something; churns on at a pace that lets some pods come up and others not;
// kills the agent at a random moment; churns on without it, and starts it again.
func (c *churn) round(t *testing.T, round int) {
	t.Helper()
	c.follow(t, c.change(t))
	changes := 3 + c.random.IntN(12)
	for range changes {
		c.change(t)
		<-time.After(time.Duration(c.random.IntN(500)) * time.Millisecond)
	}
	if err := c.agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	offline := c.random.IntN(5)
	for range offline {
		c.change(t)
	}
	if err := c.agent.Start(t.Context()); err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	t.Logf("round %d: %d changes, killed, %d changes, started again", round, changes+1, offline)
}

// follow waits until a churning pod is what it should be.
func (c *churn) follow(t *testing.T, name string) {
	t.Helper()
	generation := c.wanted[name]
	if generation == 0 {
		return
	}
	c.untilWithin(t, 3*patience, name, all(ready, func(p corev1.Pod) error {
		if got := p.Spec.Containers[0].Env[1].Value; got != fmt.Sprint(generation) {
			return fmt.Errorf("%s is generation %s, not %d", p.UID, got, generation)
		}
		return nil
	}))
}

// change gives one churning pod another content, or removes it. It says which.
func (c *churn) change(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("churn-%d", c.random.IntN(churnPods))
	if c.wanted[name] != 0 && c.random.IntN(3) == 0 {
		c.wanted[name] = 0
		c.remove(t, name)
		return name
	}
	c.used++
	c.wanted[name] = c.used
	c.apply(t, c.pod(name, c.used))
	return name
}

// settle waits until exactly what is wanted runs.
func (c *churn) settle(t *testing.T) {
	t.Helper()
	for name := range c.wanted {
		c.follow(t, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if err := testbed.Eventually(ctx, 200*time.Millisecond, c.onlyWantedRuns); err != nil {
		t.Fatalf("%v\nthe agent's log ends with:\n%s", err, c.agent.Log(40))
	}
}

// onlyWantedRuns compares the runtime with what is wanted: one sandbox per pod.
func (c *churn) onlyWantedRuns(ctx context.Context) error {
	list, err := c.bed.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	var got, want []string
	for _, s := range list.GetItems() {
		got = append(got, s.GetMetadata().GetName())
	}
	for name := range c.steady {
		want = append(want, name+"-"+testbed.NodeName)
	}
	for name, generation := range c.wanted {
		if generation != 0 {
			want = append(want, name+"-"+testbed.NodeName)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the runtime has the sandboxes %q, want %q", got, want)
	}
	return nil
}

// checkStarts: no container that was up was started again. A kill in the middle
// of a start may cut that start off (the runtime cancels it with the
// connection): then the next agent starts anew.
func (c *churn) checkStarts(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.trace, "starts"))
	if err != nil {
		t.Fatal(err)
	}
	begun, up, restarted := map[string]int{}, map[string]bool{}, []string{}
	for line := range strings.Lines(string(text)) {
		uid, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if what == "up" {
			up[uid] = true
			continue
		}
		if begun[uid]++; up[uid] {
			restarted = append(restarted, uid)
		}
	}
	cut := 0
	for _, n := range begun {
		cut += n - 1
	}
	t.Logf("%d pods began, %d were up; %d starts were cut off by a kill", len(begun), len(up), cut)
	if len(restarted) > 0 {
		t.Errorf("containers that were up were started again: %v; the first:\n%s", restarted, c.story(restarted[0]))
	}
}

// watchDoubles checks until stop that no pod has two containers, or two
// sandboxes, that run at once.
func (c *churn) watchDoubles(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if doubled := c.doubled(ctx); doubled != "" {
				t.Errorf("pod %s has two of one thing at once\n%s", doubled, c.story(doubled))
				return
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// doubled is the UID of a pod that has two of one thing; empty: none has.
func (c *churn) doubled(ctx context.Context) string {
	containers, err := c.bed.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil {
		return "" // the test is over
	}
	sandboxes, err := c.bed.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}})
	if err != nil {
		return ""
	}
	seen := map[string]bool{}
	for _, item := range containers.GetContainers() {
		if seen["container "+item.Labels[uidLabel]] {
			return item.Labels[uidLabel]
		}
		seen["container "+item.Labels[uidLabel]] = true
	}
	for _, item := range sandboxes.GetItems() {
		if seen["sandbox "+item.Labels[uidLabel]] {
			return item.Labels[uidLabel]
		}
		seen["sandbox "+item.Labels[uidLabel]] = true
	}
	return ""
}

// story is what the agent and the runtime logged about a pod.
func (e *env) story(uid string) string {
	agent := grep(e.agent.Log(1_000_000), uid)
	ours := uid
	for _, line := range strings.Split(agent, "\n") { // containerd's log knows names and IDs
		if _, rest, found := strings.Cut(line, `pod="`); found && strings.Contains(line, uid) {
			ours, _, _ = strings.Cut(rest, `"`)
			_, ours, _ = strings.Cut(ours, "/")
		}
	}
	return "--- the agent's log:\n" + agent + "\n--- containerd's log of " + ours + ":\n" + grep(e.bed.RuntimeLog(1_000_000), ours)
}

// grep are the last lines with a word in them.
func grep(text, word string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return !strings.Contains(l, word) })
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// checkSteady: the pods that nobody touched are what they were.
func (c *churn) checkSteady(t *testing.T) {
	t.Helper()
	for name, id := range c.steady {
		status, _ := statusOf(c.until(t, name, ready), "main")
		if status.ContainerID != id || status.RestartCount != 0 {
			t.Errorf("%s was container %s and is %s, with %d restarts", name, id, status.ContainerID, status.RestartCount)
		}
	}
}

func (c *churn) removeAll(t *testing.T) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(c.manifests, "*.yaml"))
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
