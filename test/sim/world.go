package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// world is the truth about one pod UID on the node, whoever knows of it.
type world struct {
	l          *life
	uid        string
	sandboxes  []*sandbox
	containers []*container
	mounted    map[string]bool
	cgroup     bool
	dirs       bool
	hooked     bool            // Prepare hooks ran, Cleanup hooks did not yet
	reserved   map[string]bool // names that a call under way will use
	version    int             // counts what a look can see
	// past holds all runs of each container name in order, removed ones too.
	past map[string]*past
	all  map[string]*container // by ID, removed ones too
	// adopted is when a newer pod of the same UID took all of this over.
	adopted time.Time
}

type past struct {
	runs []*container
	// hazy: somebody else than the machine had a hand in it, so that the rules
	// on restarts and counts do not apply any more.
	hazy bool
}

// origin says whether the present agent made something or learned of it.
type origin struct {
	zombie bool      // made by a call of an agent that was dead by then
	seenAt time.Time // since when the present agent knows of it
}

// hidden says that the machine could not know of it at that time.
func (o origin) hidden(at time.Time) bool {
	return o.zombie && (o.seenAt.IsZero() || o.seenAt.After(at))
}

type sandbox struct {
	runtime.Sandbox
	origin
	stopped bool // on purpose, so that its network is taken away
}

// container is one run, or a container that was created and never ran.
type container struct {
	runtime.Container
	origin
	epoch    int // of the agent that made it
	removed  bool
	lost     bool // by a call of an agent that was dead by then
	restarts int32
	lag      time.Duration // from SIGTERM to the exit
	termed   bool
	ran      bool // it was started, not only created

	started   bool // startup probe succeeded, or there is none
	sick      bool // the prober was told that it is unhealthy
	hookRuns  int
	hookDone  bool // its postStart hook succeeded
	hookBad   bool // its postStart hook failed
	preStops  int
	doneBy    map[string]bool // reasons to stop it that were the case while it was seen running
	killed    string          // reason of the stop that ended it
	voided    bool            // a restart of all containers made it not count
	startHook bool            // the agent that started it knows of its postStart hook
}

func newWorld(l *life, uid string) *world {
	return &world{
		l: l, uid: uid, mounted: map[string]bool{}, reserved: map[string]bool{}, past: map[string]*past{},
		all: map[string]*container{},
	}
}

// empty says that nothing of the pod is left.
func (w *world) empty() bool {
	return len(w.sandboxes)+len(w.containers)+len(w.mounted) == 0 && !w.cgroup && !w.dirs
}

func (w *world) left() string {
	return fmt.Sprintf("%d sandboxes, %d containers, mounts %v, cgroup %v, directories %v",
		len(w.sandboxes), len(w.containers), w.mounted, w.cgroup, w.dirs)
}

// view is what a look sees.
func (w *world) view() runtime.Pod {
	pod := runtime.Pod{UID: w.uid, Namespace: "ns", Name: "p"}
	for _, s := range w.sandboxes {
		pod.Sandboxes = append(pod.Sandboxes, s.Sandbox)
	}
	slices.SortStableFunc(pod.Sandboxes, func(a, b runtime.Sandbox) int { return int(b.Attempt) - int(a.Attempt) })
	for _, c := range w.containers {
		pod.Containers = append(pod.Containers, c.Container)
	}
	slices.SortStableFunc(pod.Containers, func(a, b runtime.Container) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return int(b.Attempt) - int(a.Attempt)
	})
	return pod
}

func (w *world) sandbox(id string) *sandbox {
	for _, s := range w.sandboxes {
		if s.ID == id {
			return s
		}
	}
	return nil
}

func (w *world) container(id string) *container {
	for _, c := range w.containers {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func alive(c *container) bool {
	return c.State == runtime.ContainerRunning || c.State == runtime.ContainerUnknown
}

// running lists the processes that the machine could know of at that time.
func (w *world) running(at time.Time) []*container {
	return slices.DeleteFunc(slices.Clone(w.containers), func(c *container) bool { return !alive(c) || c.hidden(at) })
}

// ready lists the ready sandboxes that the machine could know of at that time.
func (w *world) ready(at time.Time) []*sandbox {
	return slices.DeleteFunc(slices.Clone(w.sandboxes), func(s *sandbox) bool { return !s.Ready || s.hidden(at) })
}

func (w *world) pastOf(name string) *past {
	if w.past[name] == nil {
		w.past[name] = &past{}
	}
	return w.past[name]
}

// last is the newest run of a container name, nil for none.
func (w *world) last(name string) *container {
	runs := w.pastOf(name).runs
	if len(runs) == 0 {
		return nil
	}
	return runs[len(runs)-1]
}

// addSandbox is what RunSandbox does.
func (w *world) addSandbox(attempt uint32, hostNetwork, zombie bool) {
	s := &sandbox{origin: origin{zombie: zombie}}
	s.ID = w.l.newID("sb", attempt)
	s.Attempt, s.Ready, s.CreatedAt, s.HostNetwork = attempt, true, w.l.now, hostNetwork
	if !hostNetwork {
		s.IPs = []string{fmt.Sprintf("10.1.0.%d", 1+w.l.ids%250)}
	}
	w.sandboxes = append(w.sandboxes, s)
	w.changed()
}

// addContainer is what StartContainer does, or leaves half done.
func (w *world) addContainer(a lifecycle.Action, pod *corev1.Pod, f *flight, created bool) {
	spec, what, _ := specOf(pod, a.Container)
	c := &container{
		origin: origin{zombie: f.zombie}, epoch: f.epoch, restarts: a.Restarts, doneBy: map[string]bool{},
		lag: w.l.lagOf(), startHook: !f.zombie && spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil,
	}
	c.ID, c.Name, c.Attempt, c.SandboxID = w.l.newID(a.Container, a.Attempt), a.Container, a.Attempt, a.SandboxID
	c.Image, c.ImageID, c.CreatedAt, c.State = a.Image, "sha256:"+a.Image, w.l.now, runtime.ContainerCreated
	made := *spec
	made.Image = a.Image
	c.Annotations = map[string]string{
		runtime.AnnotationRestartCount:              strconv.Itoa(int(a.Restarts)),
		runtime.AnnotationContainerHash:             lifecycle.ContainerHash(&made),
		runtime.AnnotationPodTerminationGracePeriod: strconv.FormatInt(*pod.Spec.TerminationGracePeriodSeconds, 10),
	}
	w.containers = append(w.containers, c)
	w.all[c.ID] = c
	w.changed()
	if created {
		return
	}
	c.State, c.StartedAt, c.ran = runtime.ContainerRunning, w.l.now, true
	p := w.pastOf(c.Name)
	p.runs = append(p.runs, c)
	p.hazy = p.hazy || f.zombie
	c.started = spec.StartupProbe == nil
	w.l.planRun(w, c, pod, spec, what)
}

// exit ends a process.
func (w *world) exit(c *container, code int32, reason string) {
	if !alive(c) || c.removed {
		return
	}
	w.l.trace("world: %s exits %d %s", c.ID, code, reason)
	c.State, c.ExitCode, c.FinishedAt = runtime.ContainerExited, code, w.l.now
	if code == 137 && reason == "OOMKilled" {
		c.Reason = reason
	}
	w.changed()
	w.hint()
}

// sandboxDies takes the network and perhaps the processes along.
func (w *world) sandboxDies(s *sandbox) {
	w.l.trace("world: sandbox %s dies", s.ID)
	s.Ready, s.IPs = false, nil
	w.changed()
	for _, c := range w.containers {
		if c.SandboxID == s.ID && alive(c) && w.l.rng.IntN(3) > 0 {
			w.exit(c, 137, "")
		}
	}
	w.hint()
}

func (w *world) removeContainer(c *container) {
	c.removed = true
	w.containers = slices.DeleteFunc(w.containers, func(x *container) bool { return x == c })
	w.changed()
}

func (w *world) removeSandbox(s *sandbox) {
	for _, c := range slices.Clone(w.containers) {
		if c.SandboxID == s.ID {
			w.removeContainer(c)
		}
	}
	w.sandboxes = slices.DeleteFunc(w.sandboxes, func(x *sandbox) bool { return x == s })
	w.changed()
}

func (w *world) changed() { w.version++ }

// hint tells whoever runs this pod to look again, unless it gets lost.
func (w *world) hint() {
	if w.l.chance(Hints, 0.15) {
		w.l.trace("world: the hint is lost")
		return
	}
	w.l.after(between(w.l.rng, time.Millisecond, 200*time.Millisecond), func() {
		for _, a := range w.l.agents {
			if a.w == w && !a.dead && !a.want.Held {
				a.look()
			}
		}
	})
}
