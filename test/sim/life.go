package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// Options say which life to live.
type Options struct {
	Seed    uint64
	Without []Fault
	// Trace, if set, gets one line for each thing that happens.
	Trace func(line string)
	// Decide is the machine under test; nil: lifecycle.Decide.
	Decide func(lifecycle.Input) lifecycle.Plan
}

// Result is what became of a life.
type Result struct {
	Broken  *Violation // nil: all rules held
	Steps   int        // decisions
	Actions int
	Busiest int // most actions in one hour of virtual time
}

// Violation is a rule that did not hold.
type Violation struct {
	Rule string
	Text string
	At   time.Duration // of virtual time
}

func (v *Violation) Error() string { return fmt.Sprintf("%s: %s (at %s)", v.Rule, v.Text, v.At) }

// life is one seed under way.
type life struct {
	timeline
	rng     *rand.Rand
	without map[Fault]bool
	tracer  func(string)
	decide  func(lifecycle.Input) lifecycle.Plan

	incs    []*incarnation
	agents  []*agent
	epochs  int
	ids     int
	down    bool // the runtime does not answer
	off     bool // the agent is dead and not up again
	network bool
	healed  bool
	badness float64 // how often calls fail

	steps, actions int
	hour           time.Time // in which hourly actions were counted
	hourBegan      int       // actions when the hour began
	busiest        int
	spins          int // steps at this very moment
	spinAt         time.Time
}

// The lengths of the parts of a life, in virtual time.
const (
	chaosAtLeast = 10 * time.Second
	chaosAtMost  = 40 * time.Minute
	settling     = 60 * time.Minute
	resting      = 20 * time.Minute
	leaving      = 30 * time.Minute
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Run lives one life.
func Run(o Options) (result Result) {
	l := &life{
		rng: rand.New(rand.NewPCG(o.Seed, 0x9e3779b97f4a7c15)), without: map[Fault]bool{},
		tracer: o.Trace, decide: o.Decide, network: true,
	}
	if l.decide == nil {
		l.decide = lifecycle.Decide
	}
	for _, f := range o.Without {
		l.without[f] = true
	}
	l.now, l.hour = birth, birth
	defer func() {
		result.Steps, result.Actions, result.Busiest = l.steps, l.actions, max(l.busiest, l.actions-l.hourBegan)
		switch v := recover().(type) {
		case nil:
		case *Violation:
			result.Broken = v
		case error:
			result.Broken = &Violation{Rule: "no panic", Text: v.Error(), At: l.now.Sub(birth)}
		default:
			panic(v)
		}
	}()
	l.live()
	return result
}

// must ends the life where a rule does not hold.
func (l *life) must(ok bool, rule, format string, args ...any) {
	if !ok {
		panic(&Violation{Rule: rule, Text: fmt.Sprintf(format, args...), At: l.now.Sub(birth)})
	}
}

func (l *life) tracing() bool { return l.tracer != nil }

func (l *life) trace(format string, args ...any) {
	if l.tracer != nil {
		l.tracer(fmt.Sprintf("%12s ", l.now.Sub(birth).Round(time.Millisecond)) + fmt.Sprintf(format, args...))
	}
}

func (l *life) newID(name string, attempt uint32) string {
	l.ids++
	return fmt.Sprintf("%s-%d.%d", name, attempt, l.ids)
}

func nameOf(name string, attempt uint32) string { return fmt.Sprintf("%s#%d", name, attempt) }

// live is the story: chaos, healing, rest, and the end.
func (l *life) live() {
	l.badness = pick(l.rng, 0.0, 0.02, 0.1, 0.25)
	l.firstPod()
	chaos := between(l.rng, chaosAtLeast, chaosAtMost)
	gap := pick(l.rng, 2*time.Second, 10*time.Second, 40*time.Second)
	for end := l.now.Add(chaos); l.now.Before(end); {
		l.until(l.now.Add(between(l.rng, gap/100, 2*gap)))
		l.mischief()
	}
	l.heal()
	l.until(l.now.Add(settling))
	l.checkSettled()
	before := l.actions
	l.until(l.now.Add(resting))
	l.must(l.actions == before, "rest", "%d actions on a pod that is as it should be", l.actions-before)
	l.checkSettled()
	for range 4 { // each incarnation that comes up after another
		l.deleteAll()
		l.until(l.now.Add(leaving))
		if l.allGone() {
			break
		}
	}
	l.checkGone()
}

// firstPod is what everything begins with.
func (l *life) firstPod() {
	w := newWorld(l, "u0")
	inc := &incarnation{name: "first", w: w, pod: randomPod(l.rng, "u0"), static: l.rng.IntN(3) == 0, far: map[string]bool{}}
	l.farVolumes(inc)
	l.incs = append(l.incs, inc)
	l.newAgent(inc, l.wantOf(inc))
}

func (l *life) farVolumes(inc *incarnation) {
	for _, v := range inc.pod.Spec.Volumes {
		if l.chance(Far, 0.2) {
			inc.far[v.Name] = true
		}
	}
}

func (l *life) wantOf(inc *incarnation) lifecycle.Want {
	rules := lifecycle.DefaultRules()
	rules.RuntimeName, rules.HostIPs = "containerd", []string{"10.0.0.1"}
	return lifecycle.Want{
		UID: inc.w.uid, Namespace: "ns", Name: "p", Pod: inc.pod, Static: inc.static, Held: inc.held, Stop: inc.stop, Rules: rules,
	}
}

// mischief is one random thing that happens to the node or the wishes.
func (l *life) mischief() {
	inc := l.incs[l.rng.IntN(len(l.incs))]
	n := l.rng.IntN(100)
	switch {
	case n < 6 && l.chance(Restarts, 1):
		l.restartAgent()
	case n < 10 && l.chance(Sandboxes, 1):
		if len(inc.w.sandboxes) > 0 {
			inc.w.sandboxDies(inc.w.sandboxes[l.rng.IntN(len(inc.w.sandboxes))])
		}
	case n < 25 && l.chance(Exits, 1):
		l.crash(inc.w)
	case n < 29 && l.chance(Outages, 1):
		l.trace("world: the runtime is down")
		l.down = true
		l.after(between(l.rng, time.Second, time.Minute), func() { l.up() })
	case n < 32 && l.chance(Network, 1):
		l.setNetwork(false)
		l.after(between(l.rng, time.Second, 2*time.Minute), func() { l.setNetwork(true) })
	case n < 38 && l.chance(Far, 1):
		l.near(inc)
	case n < 40 && l.chance(Vanish, 1):
		l.vanish(inc.w)
	case n < 42 && l.chance(Unknown, 1):
		l.loseSight(inc.w)
	case n < 52 && l.chance(Probes, 1):
		l.probeNews(inc)
	case n < 58 && l.chance(Changes, 1):
		l.change(inc)
	case n < 61 && l.chance(Stops, 1):
		l.stopWish(inc)
	case n < 63 && l.chance(Comebacks, 1):
		l.comeBack()
	case n < 76 && l.chance(Objects, 1):
		l.news(inc)
	}
}

func (l *life) up() {
	if l.down {
		l.trace("world: the runtime is up")
	}
	l.down = false
}

func (l *life) setNetwork(ready bool) {
	l.network = ready
	for _, a := range l.agents {
		if !a.dead && a.seen.NetworkReady != ready {
			a.seen.NetworkReady = ready
			l.after(time.Millisecond, a.step)
		}
	}
}

// news is that something outside the pod has changed that it may wait for.
func (l *life) news(inc *incarnation) {
	a := inc.agent
	if a.dead || a.over {
		return
	}
	l.trace("world: news for %s", inc.name)
	a.seen.NewsAt = l.now
	if a.seen.Admission.Verdict == lifecycle.VerdictLater {
		a.seen.Admission.RetryAt = l.now
	}
	l.after(time.Millisecond, a.step)
}

func (l *life) near(inc *incarnation) {
	clear(inc.far)
	if a := inc.agent; !a.dead && len(a.seen.Far) > 0 {
		clear(a.seen.Far)
		l.after(time.Millisecond, a.step)
	}
}

func (l *life) crash(w *world) {
	up := slices.DeleteFunc(slices.Clone(w.containers), func(c *container) bool { return !alive(c) })
	if len(up) > 0 {
		code := pick(l.rng, int32(0), 1, 137, exitRestart, exitRestartAll)
		reason := ""
		if code == 137 {
			reason = "OOMKilled"
		}
		w.exit(pick(l.rng, up...), code, reason)
	}
}

func (l *life) vanish(w *world) {
	for _, c := range w.containers {
		if c.State == runtime.ContainerExited && l.rng.IntN(2) == 0 {
			l.trace("world: somebody removes %s", c.ID)
			w.pastOf(c.Name).hazy = true
			w.removeContainer(c)
			w.hint()
			return
		}
	}
}

func (l *life) loseSight(w *world) {
	for _, c := range w.containers {
		if c.State == runtime.ContainerRunning && l.rng.IntN(2) == 0 {
			l.trace("world: %s is in an unknown state", c.ID)
			c.State = runtime.ContainerUnknown
			w.changed()
			w.hint()
			return
		}
	}
}

// change brings another spec for the same pod.
func (l *life) change(inc *incarnation) {
	pod := inc.pod.DeepCopy()
	pod.Generation++
	switch l.rng.IntN(6) {
	case 0:
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: fmt.Sprint("e", len(pod.Spec.EphemeralContainers)), Image: "img/e", ImagePullPolicy: corev1.PullIfNotPresent,
			},
		})
	case 1:
		if len(pod.Spec.InitContainers) > 0 {
			c := &pod.Spec.InitContainers[l.rng.IntN(len(pod.Spec.InitContainers))]
			c.Image = fmt.Sprint("img/", c.Name, ":", l.rng.IntN(3))
		}
	default:
		c := &pod.Spec.Containers[l.rng.IntN(len(pod.Spec.Containers))]
		c.Image = fmt.Sprint("img/", c.Name, ":", l.rng.IntN(3))
	}
	l.setPod(inc, pod)
}

func (l *life) setPod(inc *incarnation, pod *corev1.Pod) {
	l.trace("wish: generation %d of %s", pod.Generation, inc.name)
	inc.pod = pod
	if a := inc.agent; !a.dead && a.want.Pod != nil {
		a.wish(lifecycle.Want{Pod: pod, Held: a.want.Held})
	}
}

// stopWish asks for the end, or for an earlier one.
func (l *life) stopWish(inc *incarnation) {
	reason := pick(l.rng, lifecycle.StopDeleted, lifecycle.StopDeleted, lifecycle.StopEvicted, lifecycle.StopShutdown)
	grace := pick(l.rng, 0, time.Second, 10*time.Second, 45*time.Second, 2*time.Minute)
	l.stop(inc, reason, grace)
}

func (l *life) stop(inc *incarnation, reason lifecycle.StopReason, grace time.Duration) {
	l.trace("wish: stop %s, %s within %s", inc.name, reason, grace)
	stop := lifecycle.Stop{Reason: reason, At: l.now, Grace: grace}
	if !reason.Leaves() {
		stop.StatusReason, stop.Message = string(reason), "the node says so"
	}
	next := lifecycle.Want{Pod: inc.pod, Stop: &stop}
	merged := lifecycle.Want{Stop: inc.stop}.Merge(next)
	inc.stop = merged.Stop
	if inc.killAt.IsZero() || stop.KillAt().Before(inc.killAt) {
		inc.killAt = stop.KillAt()
	}
	if a := inc.agent; !a.dead && !a.over {
		next.Held = a.want.Held
		if a.want.Pod == nil {
			next.Pod = nil
		}
		a.wish(next)
	}
}

// comeBack deletes the newest incarnation and brings another under its UID, or
// as a static pod under its name.
func (l *life) comeBack() {
	old := l.incs[len(l.incs)-1]
	if len(l.incs) > 2 || l.off {
		return
	}
	l.stop(old, lifecycle.StopDeleted, pick(l.rng, 0, 5*time.Second, time.Minute))
	w := old.w
	uid := w.uid
	if l.rng.IntN(2) == 0 {
		uid = fmt.Sprint("u", len(l.incs))
		w = newWorld(l, uid)
	}
	inc := &incarnation{
		name: fmt.Sprint("comeback", len(l.incs)), w: w, pod: randomPod(l.rng, uid), static: true, held: l.anyLeft(l.incs), far: map[string]bool{},
	}
	if !inc.held {
		clear(w.past)
	}
	l.trace("wish: %s (uid %s, held %v)", inc.name, uid, inc.held)
	old.static = true
	l.incs = append(l.incs, inc)
	l.newAgent(inc, l.wantOf(inc))
}

// unhold lets the next incarnation start when the one before it is gone.
func (l *life) unhold() {
	for i, inc := range l.incs {
		if !inc.held || inc.gone || l.anyLeft(l.incs[:i]) {
			continue
		}
		l.trace("wish: %s is not held any more", inc.name)
		inc.held = false
		clear(inc.w.past)
		a := inc.agent
		if a.dead || a.over {
			continue
		}
		a.want.Held = false
		a.applied = a.looks
		a.seen.Looked, a.seen.VolumesLooked = false, false
		a.seen.Runtime, a.seen.Mounted = runtime.Pod{}, map[string]bool{}
		a.look()
		a.step()
	}
}

func (l *life) anyLeft(incs []*incarnation) bool {
	return slices.ContainsFunc(incs, func(inc *incarnation) bool { return !inc.gone })
}

// heal ends all bad luck.
func (l *life) heal() {
	l.trace("world: all heals")
	l.healed = true
	l.up()
	l.setNetwork(true)
	for _, inc := range l.incs {
		l.near(inc)
		for _, c := range inc.w.containers {
			l.healRun(inc, c)
		}
		l.replaceHopeless(inc)
	}
}

// replaceHopeless changes the images of containers that failed for good:
// nothing but another spec can help those.
func (l *life) replaceHopeless(inc *incarnation) {
	pod := inc.pod.DeepCopy()
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].Image += "-good"
		}
	}
	pod.Generation++
	if a := inc.agent; !a.dead {
		for _, f := range a.flights {
			if f.fate == fatality {
				f.fate = fails
			}
		}
		hopeless := slices.ContainsFunc(slices.Collect(mapsValues(a.seen.Failed)), func(f lifecycle.Failure) bool { return f.Fatal })
		for _, c := range a.mem.Containers {
			hopeless = hopeless || c.StartFailure != nil && c.StartFailure.Fatal
		}
		if hopeless {
			l.setPod(inc, pod)
		}
	}
}

func (l *life) deleteAll() {
	for _, inc := range l.incs {
		if !inc.gone && !inc.held {
			l.stop(inc, lifecycle.StopDeleted, pick(l.rng, 0, 10*time.Second, 2*time.Minute))
		}
	}
	l.adoptOrphans()
}

func (l *life) allGone() bool {
	return !slices.ContainsFunc(l.incs, func(inc *incarnation) bool { return !inc.gone || !inc.w.empty() })
}

// adoptOrphans gives what is left of pods that nobody runs any more to an
// actor without a spec, as the node does after a relist.
func (l *life) adoptOrphans() {
	for _, inc := range slices.Clone(l.incs) {
		if inc.gone && !inc.w.empty() && !l.tended(inc.w) {
			l.trace("world: orphans under %s: %s", inc.w.uid, inc.w.left())
			l.orphan(inc)
		}
	}
}

func (l *life) tended(w *world) bool {
	return slices.ContainsFunc(l.incs, func(inc *incarnation) bool { return inc.w == w && !inc.gone && !inc.held })
}

func (l *life) orphan(inc *incarnation) {
	inc.gone, inc.killAt = false, time.Time{}
	want := l.wantOf(inc)
	want.Pod, want.Stop, want.Held = nil, nil, false
	l.newAgent(inc, want)
}
