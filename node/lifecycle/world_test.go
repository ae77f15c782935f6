package lifecycle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a perfect node for one pod: every action works, at once, unless a
// test says otherwise. It is strict: what a sound machine never asks for fails
// the test.
type world struct {
	t     testing.TB
	now   time.Time
	want  Want
	seen  Seen
	mem   Memory
	busy  map[Key]Action
	plan  Plan
	log   []string // actions in order, as "Kind object"
	event []string // events as "Reason: message"
	ids   int
	// hold keeps actions of these kinds in flight until land is called.
	hold map[Kind]bool
	// fail makes an action fail; it may still change the world itself.
	fail func(Action) *Failure
	// exits maps "container#attempt" to the exit code it ends with at once.
	exits map[string]int32
	// quick leaves out the costly checks of a plan; nil: never.
	quick func() bool
	// killAt is when each container under a stop is killed at the latest.
	killAt map[string]time.Time
}

func newWorld(t testing.TB, pod *corev1.Pod) *world {
	t.Helper()
	rules := DefaultRules()
	rules.RuntimeName = "containerd"
	rules.HostIPs = []string{"10.0.0.1"}
	return &world{
		t: t, now: t0, busy: map[Key]Action{}, hold: map[Kind]bool{}, exits: map[string]int32{},
		killAt: map[string]time.Time{},
		want:   Want{UID: "u1", Namespace: "ns", Name: "p", Pod: pod, Rules: rules},
		seen: Seen{
			Looked: true, NetworkReady: true, VolumesLooked: true,
			Mounted: map[string]bool{}, Images: map[string]Image{}, Probes: map[string]Probe{},
			PostStart: map[string]PostStart{}, Failed: map[Key]Failure{},
		},
	}
}

func (w *world) input() Input {
	return Input{Now: w.now, Want: w.want, Seen: w.seen, Mem: w.mem, Busy: w.busy}
}

// step decides once and starts what was decided.
func (w *world) step() bool {
	w.t.Helper()
	in := w.input()
	var plan Plan
	if w.quick != nil && w.quick() {
		plan = Decide(in)
	} else {
		before := jsonOf(w.t, in)
		plan = Decide(in)
		w.checkPure(in, before, plan)
	}
	w.checkPlan(in, plan)
	w.plan, w.mem = plan, plan.Mem
	for _, e := range plan.Events {
		w.event = append(w.event, e.Reason+": "+e.Message)
	}
	for _, key := range plan.Cancel {
		if a, flying := w.busy[key]; flying {
			w.log = append(w.log, "cancel "+string(key))
			delete(w.busy, key)
			_ = a
		}
	}
	for _, a := range plan.Do {
		w.busy[a.Key] = a
		w.log = append(w.log, a.String())
	}
	for _, a := range plan.Do {
		if !w.hold[a.Kind] {
			w.land(a.Key)
		}
	}
	return len(plan.Do)+len(plan.Cancel) > 0
}

// String names the action in the tests' logs.
func (a Action) String() string {
	object := ""
	switch a.Kind {
	case Pull, RunPostStart:
		object = a.Container
	case StartContainer:
		object = fmt.Sprintf("%s#%d", a.Container, a.Attempt)
	case StopContainer:
		object = fmt.Sprintf("%s %s", a.Container, a.Grace)
	case RemoveContainer:
		object = a.ContainerID
	case Mount, Unmount:
		object = a.Volume
	case RunSandbox:
		object = strconv.Itoa(int(a.Attempt))
	case StopSandbox, RemoveSandbox:
		object = a.SandboxID
	case Admit, RunHooksPrepare, RunHooksStopping, RunHooksCleanup, EnsureCgroup, RemoveCgroup, RemovePodDir:
	}
	return strings.TrimSpace(string(a.Kind) + " " + object)
}

// checkPure holds that Decide is a pure function of what JSON tells of its input.
func (w *world) checkPure(in Input, before string, plan Plan) {
	w.t.Helper()
	if after := jsonOf(w.t, in); after != before {
		w.t.Fatalf("Decide changed its input\nbefore %s\nafter  %s", before, after)
	}
	if again := Decide(in); jsonOf(w.t, again) != jsonOf(w.t, plan) {
		w.t.Fatalf("two plans for one input\n%s\n%s", jsonOf(w.t, plan), jsonOf(w.t, again))
	}
	var back Input
	if err := json.Unmarshal([]byte(before), &back); err != nil {
		w.t.Fatal(err)
	}
	if again := Decide(back); jsonOf(w.t, again) != jsonOf(w.t, plan) {
		w.t.Fatalf("another plan after a JSON round trip\n%s\n%s", jsonOf(w.t, plan), jsonOf(w.t, again))
	}
}

// checkPlan holds what is true of every plan.
func (w *world) checkPlan(in Input, plan Plan) {
	w.t.Helper()
	if plan.Mem.Phase < in.Mem.Phase {
		w.t.Fatalf("phase fell from %d to %d", in.Mem.Phase, plan.Mem.Phase)
	}
	seen := map[Key]bool{}
	for _, a := range plan.Do {
		if _, flying := w.busy[a.Key]; flying || seen[a.Key] {
			w.t.Fatalf("two actions of key %s", a.Key)
		}
		seen[a.Key] = true
		if a.Kind == StopContainer {
			at, before := in.Now.Add(a.Grace), w.killAt[a.ContainerID]
			if !before.IsZero() && a.Grace > 0 && at.After(before) {
				w.t.Fatalf("grace of %s grew from %s to %s", a.ContainerID, before, at)
			}
			w.killAt[a.ContainerID] = at
		}
	}
	if !plan.Wake.IsZero() && !plan.Wake.After(in.Now) {
		w.t.Fatalf("wake %s is not after now %s", plan.Wake, in.Now)
	}
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// land ends the flight of a key.
func (w *world) land(key Key) {
	w.t.Helper()
	a := w.busy[key]
	delete(w.busy, key)
	if w.fail != nil {
		if f := w.fail(a); f != nil {
			f.At, f.Count = w.now, w.seen.Failed[key].Count+1
			f.Kind = a.Kind
			w.seen.Failed[key] = *f
			return
		}
	}
	delete(w.seen.Failed, key)
	w.apply(a)
}

func (w *world) apply(a Action) {
	w.t.Helper()
	switch a.Kind {
	case Admit:
		w.seen.Admission = Admission{Verdict: VerdictAdmit}
	case RunHooksPrepare:
		w.seen.Prepared = true
	case RunHooksStopping:
		w.seen.StoppingDone = true
	case RunHooksCleanup:
		w.seen.CleanedUp = true
	case EnsureCgroup:
		w.seen.Cgroup = true
	case RemoveCgroup:
		w.strict(len(w.alive()) == 0, "cgroup removed under %v", w.alive())
		w.seen.CgroupGone = true
	case Mount:
		w.seen.Mounted[a.Volume] = true
	case Unmount:
		w.strict(len(w.alive()) == 0, "unmount under %v", w.alive())
		for _, s := range w.seen.Runtime.Sandboxes {
			w.strict(!s.Ready, "unmount under sandbox %s", s.ID)
		}
		delete(w.seen.Mounted, a.Volume)
	case Pull:
		w.seen.Images[a.Container] = Image{Spec: a.Image, Ref: "sha256:" + a.Image}
	case RunSandbox:
		w.addSandbox(a.Attempt)
	case StopSandbox, RemoveSandbox:
		w.endSandbox(a)
	case StartContainer:
		w.startContainer(a)
	case StopContainer:
		if slices.Contains(w.alive(), a.ContainerID) { // it may have ended, or be gone, by now
			w.exit(a.ContainerID, 143)
		}
	case RemoveContainer:
		w.editContainers(func(list []runtime.Container) []runtime.Container {
			return slices.DeleteFunc(list, func(c runtime.Container) bool {
				w.strict(c.ID != a.ContainerID || !alive(c), "removed %s that runs", c.ID)
				return c.ID == a.ContainerID
			})
		})
	case RunPostStart:
		w.seen.PostStart[a.ContainerID] = PostStart{Done: true}
	case RemovePodDir:
		w.strict(len(w.seen.Mounted) == 0, "directory removed over mounts")
		w.seen.DirsGone = true
	default:
		w.t.Fatalf("unknown action %q", a.Kind)
	}
}

func (w *world) strict(ok bool, format string, args ...any) {
	w.t.Helper()
	if !ok {
		w.t.Fatalf(format+"\nlog: %s", append(args, strings.Join(w.log, "; "))...)
	}
}

func (w *world) alive() []string {
	var ids []string
	for _, c := range w.seen.Runtime.Containers {
		if alive(c) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func (w *world) addSandbox(attempt uint32) string {
	w.ids++
	id := fmt.Sprintf("sb%d", attempt)
	host := w.want.Pod != nil && w.want.Pod.Spec.HostNetwork
	s := runtime.Sandbox{ID: id, Attempt: attempt, Ready: true, CreatedAt: w.now, HostNetwork: host}
	if !host {
		s.IPs = []string{"10.1.0.5"}
	}
	w.seen.Runtime.Sandboxes = append([]runtime.Sandbox{s}, w.seen.Runtime.Sandboxes...)
	return id
}

func (w *world) endSandbox(a Action) {
	w.t.Helper()
	for _, c := range w.seen.Runtime.Containers {
		w.strict(c.SandboxID != a.SandboxID || !alive(c), "%s under running %s", a.Kind, c.ID)
	}
	list := slices.Clone(w.seen.Runtime.Sandboxes)
	for i := range list {
		if list[i].ID == a.SandboxID {
			list[i].Ready, list[i].IPs = false, nil
		}
	}
	if a.Kind == RemoveSandbox {
		list = slices.DeleteFunc(list, func(s runtime.Sandbox) bool { return s.ID == a.SandboxID })
		w.editContainers(func(cs []runtime.Container) []runtime.Container {
			return slices.DeleteFunc(cs, func(c runtime.Container) bool { return c.SandboxID == a.SandboxID })
		})
	}
	w.seen.Runtime.Sandboxes = list
}

func (w *world) startContainer(a Action) {
	w.t.Helper()
	w.strict(w.mem.Phase <= Running, "start of %s in phase %d", a.Container, w.mem.Phase)
	for _, c := range w.seen.Runtime.Containers {
		w.strict(c.Name != a.Container || !alive(c), "second copy of %s", a.Container)
		w.strict(c.Name != a.Container || c.Attempt != a.Attempt, "name of %s#%d is taken", a.Container, a.Attempt)
	}
	c := w.newContainer(a.Container, a.Attempt, a.SandboxID)
	c.Annotations[runtime.AnnotationRestartCount] = strconv.Itoa(int(a.Restarts))
	w.addContainer(c)
	if code, ends := w.exits[fmt.Sprintf("%s#%d", a.Container, a.Attempt)]; ends {
		w.exit(c.ID, code)
	}
}

func (w *world) newContainer(name string, attempt uint32, sandbox string) runtime.Container {
	c := runtime.Container{
		ID: fmt.Sprintf("%s-%d", name, attempt), SandboxID: sandbox, Name: name, Attempt: attempt,
		State: runtime.ContainerRunning, CreatedAt: w.now, StartedAt: w.now, ImageID: "sha256:" + name,
		Annotations: map[string]string{
			runtime.AnnotationRestartCount:              strconv.Itoa(int(attempt)),
			runtime.AnnotationPodTerminationGracePeriod: "30",
		},
	}
	if w.want.Pod != nil {
		for _, spec := range slices.Concat(w.want.Pod.Spec.InitContainers, w.want.Pod.Spec.Containers) {
			if spec.Name == name {
				c.Annotations[runtime.AnnotationContainerHash] = ContainerHash(&spec)
			}
		}
	}
	return c
}

func (w *world) addContainer(c runtime.Container) {
	w.editContainers(func(list []runtime.Container) []runtime.Container {
		list = append(list, c)
		slices.SortStableFunc(list, func(a, b runtime.Container) int {
			if a.Name != b.Name {
				return strings.Compare(a.Name, b.Name)
			}
			return int(b.Attempt) - int(a.Attempt)
		})
		return list
	})
}

// editContainers replaces the list, since Decide may keep nothing but what it
// was handed must not change under it either.
func (w *world) editContainers(edit func([]runtime.Container) []runtime.Container) {
	w.seen.Runtime.Containers = edit(slices.Clone(w.seen.Runtime.Containers))
}

func (w *world) setContainer(id string, edit func(*runtime.Container)) {
	w.t.Helper()
	found := false
	w.editContainers(func(list []runtime.Container) []runtime.Container {
		for i := range list {
			if list[i].ID == id {
				edit(&list[i])
				found = true
			}
		}
		return list
	})
	w.strict(found, "no container %s", id)
}

// exit ends a container with that code, now.
func (w *world) exit(id string, code int32) {
	w.t.Helper()
	w.setContainer(id, func(c *runtime.Container) {
		c.State, c.ExitCode, c.FinishedAt = runtime.ContainerExited, code, w.now
	})
}

// settle steps until nothing happens any more.
func (w *world) settle() {
	w.t.Helper()
	for range 200 {
		if !w.step() {
			return
		}
	}
	w.t.Fatalf("never quiet: %s", strings.Join(w.log[len(w.log)-20:], "; "))
}

// after lets time pass, deciding at each wake on the way.
func (w *world) after(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for !w.plan.Wake.IsZero() && !w.plan.Wake.After(end) {
		w.now = w.plan.Wake
		w.settle()
	}
	w.now = end
	w.settle()
}

// took returns what was logged since the last call.
func (w *world) took() []string {
	log := w.log
	w.log = nil
	return log
}

// expect compares what was done since the last call.
func (w *world) expect(want ...string) {
	w.t.Helper()
	if got := w.took(); !slices.Equal(got, want) {
		w.t.Fatalf("did  %s\nwant %s", strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

func (w *world) expectPhase(phase Phase, api corev1.PodPhase) {
	w.t.Helper()
	if w.mem.Phase != phase || w.plan.Status.Phase != api {
		w.t.Fatalf("phase %d %s, want %d %s\nlog: %s", w.mem.Phase, w.plan.Status.Phase, phase, api, strings.Join(w.log, "; "))
	}
}

func (w *world) status(name string) corev1.ContainerStatus {
	w.t.Helper()
	st, found := statusOf(&w.plan.Status, name)
	if !found {
		w.t.Fatalf("no status of %s", name)
	}
	return st
}

// state prints a container's state in one word or two.
func (w *world) state(name string) string {
	w.t.Helper()
	return stateString(w.status(name).State)
}

func stateString(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("%s(%d)", s.Terminated.Reason, s.Terminated.ExitCode)
	case s.Waiting != nil:
		return s.Waiting.Reason
	}
	return "none"
}

func (w *world) expectState(name, want string) {
	w.t.Helper()
	if got := w.state(name); got != want {
		w.t.Fatalf("%s is %s, want %s\nlog: %s", name, got, want, strings.Join(w.log, "; "))
	}
}

func (w *world) condition(kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range w.plan.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func (w *world) stopNow(reason StopReason, grace time.Duration) {
	w.want = w.want.Merge(Want{
		UID: w.want.UID, Namespace: w.want.Namespace, Name: w.want.Name, Rules: w.want.Rules, Static: w.want.Static, Held: w.want.Held,
		Stop: &Stop{Reason: reason, At: w.now, Grace: grace},
	})
}

// restartAgent loses all that an agent forgets.
func (w *world) restartAgent() {
	prior := w.plan.Status.DeepCopy()
	w.want.Prior = prior
	w.mem, w.busy, w.killAt = Memory{}, map[Key]Action{}, map[string]time.Time{}
	w.seen = Seen{
		Looked: true, NetworkReady: true, VolumesLooked: true, Runtime: w.seen.Runtime,
		Mounted: w.seen.Mounted, Images: map[string]Image{}, Probes: map[string]Probe{},
		PostStart: map[string]PostStart{}, Failed: map[Key]Failure{},
	}
}

// Pods for tests.

type podOption func(*corev1.Pod)

func newPod(policy corev1.RestartPolicy, options ...podOption) *corev1.Pod {
	grace := int64(30)
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.UID, pod.Generation = "p", "ns", "u1", 3
	pod.Spec.RestartPolicy = policy
	pod.Spec.TerminationGracePeriodSeconds = &grace
	for _, o := range options {
		o(pod)
	}
	return pod
}

func mainC(name string, edits ...func(*corev1.Container)) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, cont(name, edits)) }
}

func initC(name string, edits ...func(*corev1.Container)) podOption {
	return func(p *corev1.Pod) { p.Spec.InitContainers = append(p.Spec.InitContainers, cont(name, edits)) }
}

func sidecar(name string, edits ...func(*corev1.Container)) podOption {
	always := corev1.ContainerRestartPolicyAlways
	return initC(name, append(edits, func(c *corev1.Container) { c.RestartPolicy = &always })...)
}

func cont(name string, edits []func(*corev1.Container)) corev1.Container {
	c := corev1.Container{Name: name, Image: "img/" + name, ImagePullPolicy: corev1.PullIfNotPresent}
	for _, e := range edits {
		e(&c)
	}
	return c
}

func mounting(volume string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/" + volume})
	}
}

func volumes(names ...string) podOption {
	return func(p *corev1.Pod) {
		for _, n := range names {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: n})
		}
	}
}
