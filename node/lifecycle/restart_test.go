package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

func rule(action corev1.ContainerRestartRuleAction, op corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{
		Action:    action,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
	}
}

const (
	restart = corev1.ContainerRestartRuleActionRestart
	all     = corev1.ContainerRestartRuleActionRestartAllContainers
	in      = corev1.ContainerRestartRuleOnExitCodesOpIn
	notIn   = corev1.ContainerRestartRuleOnExitCodesOpNotIn
)

func restarting(policy corev1.ContainerRestartPolicy, rules ...corev1.ContainerRestartRule) func(*corev1.Container) {
	return func(c *corev1.Container) { c.RestartPolicy, c.RestartPolicyRules = &policy, rules }
}

func TestRestartAfter(t *testing.T) {
	const always, onFailure, never = corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	off := DefaultRules()
	off.RestartRules = false
	noAll := DefaultRules()
	noAll.RestartAllContainers = false
	for name, tc := range map[string]struct {
		edit  func(*corev1.Container)
		init  bool
		pod   corev1.RestartPolicy
		exit  int32
		rules Rules
		want  bool
	}{
		"always 0":                  {pod: always, want: true},
		"always 1":                  {pod: always, exit: 1, want: true},
		"default is always":         {want: true},
		"on failure 0":              {pod: onFailure},
		"on failure 1":              {pod: onFailure, exit: 1, want: true},
		"never 0":                   {pod: never},
		"never 1":                   {pod: never, exit: 1},
		"init always 0":             {pod: always, init: true},
		"init always 1":             {pod: always, init: true, exit: 1, want: true},
		"init never 1":              {pod: never, init: true, exit: 1},
		"own policy wins":           {pod: always, exit: 1, edit: restarting("Never")},
		"own policy, gate off":      {pod: always, exit: 1, edit: restarting("Never"), rules: off, want: true},
		"rule in":                   {pod: never, exit: 42, edit: restarting("Never", rule(restart, in, 1, 42)), want: true},
		"rule in, other code":       {pod: never, exit: 2, edit: restarting("Never", rule(restart, in, 1, 42))},
		"rule in, gate off":         {pod: never, exit: 42, edit: restarting("Never", rule(restart, in, 42)), rules: off},
		"rule not in":               {pod: never, exit: 2, edit: restarting("Never", rule(restart, notIn, 1)), want: true},
		"rule not in, listed":       {pod: never, exit: 1, edit: restarting("Never", rule(restart, notIn, 1))},
		"unmatched rule, policy":    {pod: never, exit: 2, edit: restarting("OnFailure", rule(restart, in, 1)), want: true},
		"all containers":            {pod: never, exit: 7, edit: restarting("Never", rule(all, in, 7)), want: true},
		"all containers, gate off":  {pod: never, exit: 7, edit: restarting("Never", rule(all, in, 7)), rules: noAll},
		"init rule for its success": {pod: never, init: true, edit: restarting("Never", rule(restart, in, 0)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := corev1.Container{Name: "a"}
			if tc.edit != nil {
				tc.edit(&spec)
			}
			rules := tc.rules
			if rules.BackoffBase == 0 {
				rules = DefaultRules()
			}
			if got := restartAfter(&spec, tc.init, tc.pod, tc.exit, rules); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBackoffSeries(t *testing.T) {
	rules := DefaultRules()
	wait := backoffAfterLoss(0, time.Second, rules)
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		if wait != want*time.Second {
			t.Fatalf("end %d: %s, want %ds", i, wait, want)
		}
		wait = nextBackoff(wait, time.Second, rules)
	}
	if got := nextBackoff(300*time.Second, 10*time.Minute, rules); got != 0 {
		t.Errorf("after a long run: %s", got)
	}
	for restarts, want := range map[int32]time.Duration{0: 0, 1: 10, 2: 20, 5: 160, 6: 300, 60: 300} {
		if got := backoffAfterLoss(restarts, time.Second, rules); got != want*time.Second {
			t.Errorf("memory lost after %d restarts: %s, want %ds", restarts, got, want)
		}
	}
	if got := backoffAfterLoss(9, time.Hour, rules); got != 0 {
		t.Errorf("memory lost after a long run: %s", got)
	}
	if got := backoffAfterLoss(9, 0, Rules{}); got != 0 {
		t.Errorf("no back-off wanted: %s", got)
	}
}

func TestCrashLoop(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.exits = map[string]int32{"a#0": 1, "a#1": 1, "a#2": 1}
	w.settle()
	w.expect("Admit", "RunHooksPrepare", "EnsureCgroup", "Pull a", "RunSandbox 0", "StartContainer a#0", "StartContainer a#1", "RemoveContainer a-0")
	st := w.status("a")
	if st.State.Waiting == nil || st.State.Waiting.Reason != "CrashLoopBackOff" ||
		st.State.Waiting.Message != "back-off 10s restarting failed container=a pod=p_ns(u1)" {
		t.Fatalf("state %+v", st.State)
	}
	if st.LastTerminationState.Terminated == nil || st.LastTerminationState.Terminated.ExitCode != 1 ||
		st.RestartCount != 1 || st.Ready || *st.Started || st.ContainerID != "containerd://a-1" {
		t.Fatalf("status %+v", st)
	}
	w.expectPhase(Running, corev1.PodRunning)
	if len(w.event) != 1 || w.event[0] != "BackOff: Back-off restarting failed container a in pod p_ns(u1)" {
		t.Fatalf("events %q", w.event)
	}
	if !w.plan.Wake.Equal(w.now.Add(10 * time.Second)) {
		t.Fatalf("wake %s", w.plan.Wake)
	}
	w.after(9 * time.Second)
	w.expect()
	w.after(time.Second)
	w.expect("StartContainer a#2", "RemoveContainer a-1")
	w.after(20 * time.Second)
	w.expect("StartContainer a#3")
	st = w.status("a")
	if w.expectState("a", "running"); st.RestartCount != 3 || st.LastTerminationState.Terminated.ContainerID != "containerd://a-2" {
		t.Fatalf("status %+v", st)
	}
	w.after(10 * time.Minute)
	w.exit("a-3", 0)
	w.settle() // it ran long enough: at once
	w.expect("StartContainer a#4", "RemoveContainer a-2")
}

func TestCrashLoopSurvivesTheAgent(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.exits = map[string]int32{"a#0": 1, "a#1": 1, "a#2": 1}
	w.settle()
	w.after(10 * time.Second) // now 20 s
	w.now = w.now.Add(5 * time.Second)
	w.restartAgent()
	w.took()
	w.settle()
	w.expect("Admit", "RunHooksPrepare", "EnsureCgroup", "Pull a")
	if st := w.status("a"); st.RestartCount != 2 || st.State.Waiting.Message != "back-off 20s restarting failed container=a pod=p_ns(u1)" {
		t.Fatalf("status %+v", st)
	}
	w.after(15 * time.Second)
	w.expect("StartContainer a#3")
}

func TestCompletion(t *testing.T) {
	for name, tc := range map[string]struct {
		policy corev1.RestartPolicy
		a, b   int32
		phase  Phase
		api    corev1.PodPhase
		stateA string
	}{
		"never, both fine":    {corev1.RestartPolicyNever, 0, 0, Cleaning, corev1.PodSucceeded, "Completed(0)"},
		"never, one failed":   {corev1.RestartPolicyNever, 0, 9, Cleaning, corev1.PodFailed, "Completed(0)"},
		"on failure, fine":    {corev1.RestartPolicyOnFailure, 0, 0, Cleaning, corev1.PodSucceeded, "Completed(0)"},
		"on failure, failing": {corev1.RestartPolicyOnFailure, 1, 0, Running, corev1.PodRunning, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(tc.policy, mainC("a"), mainC("b")))
			w.exits["a#0"], w.exits["b#0"] = tc.a, tc.b
			w.settle()
			w.expectPhase(tc.phase, tc.api)
			w.expectState("a", tc.stateA)
			if tc.phase != Cleaning {
				return
			}
			if c := w.condition(corev1.PodReady); c.Status != corev1.ConditionFalse || (c.Reason != "PodCompleted" && c.Reason != "PodFailed") {
				t.Errorf("condition %+v", c)
			}
			// It is kept, with its dead containers, until it is deleted.
			if w.settle(); len(w.seen.Runtime.Containers) != 2 || w.seen.DirsGone || !w.seen.CgroupGone {
				t.Errorf("world %+v", w.seen)
			}
			status := jsonOf(t, w.plan.Status)
			w.restartAgent()
			w.after(time.Hour)
			if got := jsonOf(t, w.plan.Status); got != status {
				t.Errorf("status changed over a restart of the agent\nwas %s\nis  %s", status, got)
			}
			w.stopNow(StopDeleted, 0)
			w.settle()
			w.expectPhase(Finished, tc.api)
			w.expectState("a", tc.stateA)
			if !w.seen.Runtime.Empty() || !w.seen.DirsGone {
				t.Errorf("left %+v", w.seen)
			}
		})
	}
}

func TestTerminalPhaseWaitsForTheLastContainer(t *testing.T) { // k/k#108366
	w := newWorld(t, newPod(corev1.RestartPolicyNever, sidecar("s"), mainC("a")))
	w.exits["a#0"] = 0
	w.hold[StopContainer] = true
	w.settle()
	w.expectPhase(Stopping, corev1.PodRunning)
	w.land(KeyContainer("s"))
	w.settle()
	w.expectPhase(Cleaning, corev1.PodSucceeded)
}

func TestLostContainers(t *testing.T) {
	lose := func(w *world) {
		w.editContainers(func([]runtime.Container) []runtime.Container { return nil })
	}
	for name, restart := range map[string]bool{"agent remembers": false, "agent forgot": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
			w.settle()
			w.took()
			lose(w)
			if restart {
				w.restartAgent()
			}
			w.settle()
			st := w.status("a")
			if last := st.LastTerminationState.Terminated; last == nil || last.Reason != "ContainerStatusUnknown" || last.ExitCode != 137 ||
				last.Message != "The container could not be located when the pod was deleted.  The container used to be Running" || st.RestartCount != 1 {
				t.Fatalf("status %+v", st)
			}

			w = newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a")))
			w.settle()
			w.took()
			lose(w)
			if restart {
				w.restartAgent()
			}
			w.settle() // it ran: it must not run twice
			w.expectPhase(Cleaning, corev1.PodFailed)
			w.expectState("a", "ContainerStatusUnknown(137)")
		})
	}
}

func TestRestartAllContainers(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyNever,
		initC("i"), sidecar("s"), mainC("a", restarting("Never", rule(all, in, 42))), mainC("b"), mainC("done")))
	w.exits = map[string]int32{"i#0": 0, "i#1": 0, "i#2": 0, "done#0": 0}
	w.settle()
	w.took()
	w.hold[StopContainer] = true
	w.exit("a-0", 42)
	w.settle()
	w.expect("StopContainer s 2s", "StopContainer b 2s", "RemoveContainer i-0", "RemoveContainer done-0")
	if c := w.condition(corev1.AllContainersRestarting); c.Status != corev1.ConditionTrue {
		t.Fatalf("condition %+v", c)
	}
	if a := w.busy[KeyContainer("b")]; !a.SkipPreStop {
		t.Fatalf("hook of %+v", a)
	}
	w.land(KeyContainer("s"))
	w.land(KeyContainer("b"))
	w.settle()
	w.expect("RemoveContainer s-0", "RemoveContainer b-0", "RemoveContainer a-0",
		"StartContainer i#1", "StartContainer s#1", "StartContainer a#1", "StartContainer b#1", "StartContainer done#1")
	w.expectPhase(Running, corev1.PodRunning)
	if c := w.condition(corev1.AllContainersRestarting); c.Status != corev1.ConditionFalse {
		t.Fatalf("condition %+v", c)
	}
	for _, name := range []string{"i", "s", "a", "b", "done"} {
		if st := w.status(name); st.RestartCount != 1 {
			t.Errorf("%s restarted %d times", name, st.RestartCount)
		}
	}
	// The second time it backs off.
	w.hold = map[Kind]bool{}
	w.exit("a-1", 42)
	w.settle()
	w.expectState("a", "CrashLoopBackOff")
	w.after(10 * time.Second)
	w.expectState("a", "running")
}

// A restart of the agent after all containers were removed and before they run
// again must not end the pod: what had completed before has to run once more
// (found by test/sim).
func TestRestartAllContainersSurvivesTheAgent(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a", restarting("Never", rule(all, in, 42))), mainC("done")))
	w.exits = map[string]int32{"done#0": 0}
	w.settle()
	w.hold[StartContainer] = true
	w.exit("a-0", 42)
	w.settle()
	if len(w.seen.Runtime.Containers) > 0 {
		t.Fatalf("containers are left: %v", w.seen.Runtime.Containers)
	}
	w.restartAgent()
	w.hold = map[Kind]bool{}
	w.settle()
	w.after(time.Minute)
	w.expectState("a", "running")
	w.expectState("done", "running")
	if c := w.condition(corev1.AllContainersRestarting); c.Status != corev1.ConditionFalse {
		t.Fatalf("condition %+v", c)
	}
}

// A pod that is stopped before all containers ran anew has not succeeded, however
// well the runs before ended (found by test/sim).
func TestRestartAllContainersCutShort(t *testing.T) {
	for _, tc := range []struct {
		name   string
		agents string // when a new agent takes over: "", "before the stop", "during the stop"
		ends   map[string]int32
		state  string // of the container that ran to its end before
		want   corev1.PodPhase
	}{
		{"not run again", "", map[string]int32{"done#0": 0, "a#1": 0}, "ContainerStatusUnknown(137)", corev1.PodFailed},
		{"not run again, new agent", "before the stop", map[string]int32{"done#0": 0, "a#1": 0}, "ContainerStatusUnknown(137)", corev1.PodFailed},
		{"not run again, newer agent", "during the stop", map[string]int32{"done#0": 0, "a#1": 0}, "ContainerStatusUnknown(137)", corev1.PodFailed},
		{"run again", "", map[string]int32{"done#0": 0, "a#1": 0, "done#1": 0}, "Completed(0)", corev1.PodSucceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyNever, sidecar("s"), mainC("a", restarting("Never", rule(all, in, 42))), mainC("done")))
			w.exits = map[string]int32{"done#0": 0}
			w.settle()
			w.exits = tc.ends
			if _, again := tc.ends["done#1"]; !again {
				w.fail = func(a Action) *Failure {
					if a.Kind == StartContainer && a.Container == "done" {
						return &Failure{Reason: "RunContainerError", RetryAt: w.now.Add(time.Hour)}
					}
					return nil
				}
			}
			w.exit("a-0", 42)
			w.settle()
			if tc.agents == "before the stop" {
				w.restartAgent()
			}
			w.hold[StopContainer] = true
			w.stopNow(StopDeleted, 30*time.Second)
			w.settle()
			if tc.agents == "during the stop" {
				w.restartAgent()
				w.settle()
			}
			w.hold = map[Kind]bool{RemoveSandbox: true}
			for key := range w.busy {
				w.land(key)
			}
			w.settle()
			w.expectState("done", tc.state)
			if got := w.plan.Status.Phase; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if c := w.condition(corev1.AllContainersRestarting); c.Status != corev1.ConditionFalse {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

func TestChangedDefinition(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a"), mainC("b")))
	w.settle()
	w.took()
	next := w.want.Pod.DeepCopy()
	next.Spec.Containers[0].Image = "img/new"
	w.want.Pod = next
	w.settle()
	w.expect("StopContainer a 30s", "Pull a", "StartContainer a#1")
	if w.event[len(w.event)-1] != "Killing: Container a definition changed, will be restarted" {
		t.Fatalf("events %q", w.event)
	}
	w.expectState("a", "running")
	w.settle()
	w.expect()
}

func TestContainerHashIsTheStockOne(t *testing.T) {
	c := corev1.Container{Name: "test_container", Image: "foo/image:v1", Args: []string{"ignored"}}
	if got := ContainerHash(&c); got != "8e45cbd0" {
		t.Fatalf("hash %s", got)
	}
}

func TestPullAlwaysPullsBeforeEachStart(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways })))
	w.settle()
	w.took()
	w.after(time.Minute)
	w.exit("a-0", 1)
	w.settle()
	w.expect("Pull a", "StartContainer a#1")
	w.after(time.Second)
	w.exit("a-1", 1)
	w.settle()
	w.expect("RemoveContainer a-0")
	w.after(10 * time.Second)
	w.expect("Pull a", "StartContainer a#2")
}

// The plan that pulls the image again must not start the container on the old
// one (found by test/sim).
func TestPullAlwaysWaitsForThePullOfItsOwnPlan(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways })))
	w.settle()
	w.after(time.Minute)
	w.took()
	w.hold[Pull] = true
	w.exit("a-0", 1)
	w.settle()
	w.expect("Pull a")
	w.land(KeyImage("a"))
	w.settle()
	w.expect("StartContainer a#1")
}
