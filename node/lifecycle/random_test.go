package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// TestRandomLives takes pods through random lives with failures, failures that
// took effect, crashes and restarts of the agent; then all heals and the pod
// must come to where it should be. The world's own checks hold at every step.
// The full simulation, with planted bugs, is in test/sim.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			live(t, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func live(t *testing.T, r *rand.Rand) {
	w := newWorld(t, randomPod(r))
	w.quick = func() bool { return r.IntN(20) > 0 }
	for _, kind := range []Kind{
		Admit, RunHooksPrepare, RunHooksStopping, RunHooksCleanup, EnsureCgroup, RemoveCgroup, Mount, Unmount, Pull,
		RunSandbox, StopSandbox, RemoveSandbox, StartContainer, StopContainer, RemoveContainer, RunPostStart, RemovePodDir,
	} {
		w.hold[kind] = true
	}
	for range 60 {
		w.step()
		w.mischief(r)
	}
	w.hold, w.fail, w.seen.NetworkReady = map[Kind]bool{}, nil, true
	for _, key := range sortedKeys(w.busy) {
		w.land(key)
	}
	w.settle()
	w.after(20 * time.Minute)
	if w.mem.Ending == nil {
		w.expectRunning()
	}
	w.stopNow(StopDeleted, 10*time.Second)
	w.settle()
	w.after(10 * time.Minute)
	if w.mem.Phase != Finished || !w.seen.Runtime.Empty() || len(w.seen.Mounted) > 0 || !w.seen.DirsGone {
		t.Fatalf("left in phase %d: %s", w.mem.Phase, jsonOf(t, w.seen))
	}
	if !terminalPhase(w.plan.Status.Phase) {
		t.Fatalf("ended %s", w.plan.Status.Phase)
	}
}

// expectRunning says that every container that should run does.
func (w *world) expectRunning() {
	w.t.Helper()
	names := map[string]bool{}
	for _, c := range w.seen.Runtime.Containers {
		if c.State == runtime.ContainerRunning {
			names[c.Name] = true
		}
	}
	for _, c := range w.want.Pod.Spec.InitContainers {
		if roleOfInit(&c) == initRole {
			// One that still runs may run for as long as it likes.
			if names[c.Name] {
				return
			}
			continue
		}
		w.strict(names[c.Name], "sidecar %s does not run: %s", c.Name, jsonOf(w.t, w.plan.Status))
	}
	if w.want.Pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return
	}
	for _, c := range w.want.Pod.Spec.Containers {
		if c.RestartPolicy != nil {
			continue
		}
		w.strict(names[c.Name], "%s does not run: %s", c.Name, jsonOf(w.t, w.plan.Status))
	}
}

func randomPod(r *rand.Rand) *corev1.Pod {
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	pod := newPod(policies[r.IntN(3)], volumes("v"))
	hook := func(c *corev1.Container) {
		if r.IntN(3) == 0 {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
		}
		if r.IntN(3) == 0 {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range r.IntN(3) {
		initC(fmt.Sprint("i", i))(pod)
	}
	if r.IntN(2) == 0 {
		sidecar("s", hook)(pod)
	}
	mainC("a", hook, mounting("v"))(pod)
	if r.IntN(2) == 0 {
		options := []func(*corev1.Container){hook}
		if r.IntN(2) == 0 {
			options = append(options, restarting("Never", rule(all, in, 42)))
		}
		mainC("b", options...)(pod)
	}
	return pod
}

// mischief does one random thing to the world.
func (w *world) mischief(r *rand.Rand) {
	switch n := r.IntN(100); {
	case n < 60:
		w.landOne(r)
	case n < 75:
		w.exitOne(r)
	case n < 85:
		w.now = w.now.Add(time.Duration(r.IntN(40)) * time.Second)
	case n < 90:
		w.restartAgent()
		if r.IntN(2) == 0 {
			w.want.Prior = nil // a static pod has none
		}
	case n < 93:
		w.sandboxDies(r)
	case n < 95:
		w.want.Pod = w.want.Pod.DeepCopy()
		w.want.Pod.Spec.Containers[0].Image = fmt.Sprint("img/", r.IntN(9))
	case n < 97:
		w.oddity(r)
	case n < 98:
		w.stopNow([]StopReason{StopDeleted, StopEvicted, StopShutdown}[r.IntN(3)], time.Duration(r.IntN(30))*time.Second)
	}
}

// oddity is something that runtimes and probers rarely do.
func (w *world) oddity(r *rand.Rand) {
	alive := w.alive()
	if len(alive) == 0 {
		w.seen.NetworkReady = !w.seen.NetworkReady
		return
	}
	id := alive[r.IntN(len(alive))]
	switch r.IntN(5) {
	case 0:
		w.setContainer(id, func(c *runtime.Container) { c.State = runtime.ContainerUnknown })
	case 1: // it is gone without a trace
		w.editContainers(func(list []runtime.Container) []runtime.Container {
			return slices.DeleteFunc(list, func(c runtime.Container) bool { return c.ID == id })
		})
	case 2:
		w.seen.PostStart[id] = PostStart{Done: true, Failed: true}
	case 3:
		name, _, _ := strings.Cut(id, "-")
		w.seen.Probes[name] = Probe{ContainerID: id, Unhealthy: true}
	case 4: // a second sandbox appears
		w.addSandbox(w.seen.Runtime.Sandboxes[0].Attempt + 1)
	}
}

// landOne ends a flight: well, badly, or badly with the effect.
func (w *world) landOne(r *rand.Rand) {
	keys := sortedKeys(w.busy)
	if len(keys) == 0 {
		return
	}
	key := keys[r.IntN(len(keys))]
	a := w.busy[key]
	outcome := r.IntN(10)
	w.fail = func(Action) *Failure {
		if outcome > 2 {
			return nil
		}
		if outcome == 0 {
			w.apply(a)
		} else if a.Kind == StartContainer && outcome == 1 {
			c := w.newContainer(a.Container, a.Attempt, a.SandboxID)
			c.State = runtime.ContainerCreated
			w.addContainer(c)
		}
		return &Failure{Reason: "Bad", Message: "luck", RetryAt: w.now.Add(time.Duration(r.IntN(10)) * time.Second)}
	}
	w.land(key)
	w.fail = nil
}

func (w *world) exitOne(r *rand.Rand) {
	alive := w.alive()
	if len(alive) > 0 {
		w.exit(alive[r.IntN(len(alive))], []int32{0, 0, 1, 42}[r.IntN(4)])
	}
}

// sandboxDies takes all that runs in it along.
func (w *world) sandboxDies(r *rand.Rand) {
	list := slices.Clone(w.seen.Runtime.Sandboxes)
	if len(list) == 0 {
		return
	}
	list[0].Ready, list[0].IPs = false, nil
	w.seen.Runtime.Sandboxes = list
	for _, c := range w.seen.Runtime.Containers {
		if alive(c) && c.SandboxID == list[0].ID && r.IntN(2) == 0 {
			w.exit(c.ID, 137)
		}
	}
}
