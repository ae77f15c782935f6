package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/runtime"
)

// probed gives a container a startup and a readiness probe.
func probed(c *corev1.Container) {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	c.StartupProbe, c.ReadinessProbe = probe, probe
}

func (w *world) probe(name string, ready bool) {
	started := true
	for _, c := range w.seen.Runtime.Containers {
		if c.Name == name && c.State == runtime.ContainerRunning {
			w.seen.Probes[name] = Probe{ContainerID: c.ID, Started: &started, Ready: &ready}
		}
	}
}

// What an agent before this one told of a container holds until the prober has
// spoken, also when this agent hears of it late, as of a static pod's mirror.
func TestReadinessAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		late, probesOnly bool
		want             corev1.ConditionStatus
	}{
		"the status is known":         {want: corev1.ConditionTrue},
		"it becomes known later":      {late: true, want: corev1.ConditionTrue},
		"only the prober counts":      {probesOnly: true, want: corev1.ConditionFalse},
		"only the prober counts, too": {late: true, probesOnly: true, want: corev1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", probed)))
			w.want.Rules.ProbesAfterRestart = tc.probesOnly
			w.settle()
			w.probe("a", true)
			w.settle()
			if got := w.condition(corev1.PodReady); got.Status != corev1.ConditionTrue {
				t.Fatalf("before: %+v", got)
			}
			w.restartAgent()
			if prior := w.want.Prior; tc.late {
				w.want.Prior = nil
				w.settle()
				if got := w.condition(corev1.PodReady); got.Status != corev1.ConditionFalse {
					t.Fatalf("nothing is known: %+v", got)
				}
				w.want.Prior = prior
			}
			w.settle()
			if got := w.condition(corev1.PodReady); got.Status != tc.want {
				t.Fatalf("the prober has not spoken: %+v", got)
			}
			w.probe("a", false)
			w.settle()
			if got := w.condition(corev1.PodReady); got.Status != corev1.ConditionFalse {
				t.Fatalf("the prober has spoken: %+v", got)
			}
		})
	}
}

// What was told of one run says nothing about the next.
func TestReadinessIsOfOneRun(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", probed)))
	w.settle()
	w.probe("a", true)
	w.settle()
	w.restartAgent()
	w.exit("a-0", 1)
	w.after(time.Minute)
	if st := w.status("a"); st.State.Running == nil || st.Ready || *st.Started {
		t.Fatalf("status %+v", st)
	}
}

func TestReadyToStartContainers(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*world)
		want string
	}{
		"none": {func(w *world) { w.hold[RunSandbox] = true }, "no pod sandbox exists"},
		"dead": {func(w *world) {
			w.settle()
			w.hold[StopSandbox], w.hold[RemoveSandbox], w.hold[RunSandbox] = true, true, true
			w.seen.Runtime.Sandboxes[0].Ready = false
		}, "pod sandbox is not ready"},
		"of another network": {func(w *world) {
			w.settle()
			w.hold[StopSandbox], w.hold[RemoveSandbox], w.hold[RunSandbox], w.hold[StopContainer] = true, true, true, true
			w.seen.Runtime.Sandboxes[0].HostNetwork = true
		}, "network namespace mode changed and sandbox needs to be recreated"},
		"without an address": {func(w *world) {
			w.settle()
			w.hold[StopSandbox], w.hold[RemoveSandbox], w.hold[RunSandbox], w.hold[StopContainer] = true, true, true, true
			w.seen.Runtime.Sandboxes[0].NoAddress = true
			w.now = w.now.Add(time.Minute)
		}, "pod sandbox has no IP address"},
		"good": {func(*world) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
			tc.edit(w)
			w.settle()
			got := w.condition(corev1.PodReadyToStartContainers)
			met := got.Status == corev1.ConditionTrue
			if met != (tc.want == "") || got.Message != tc.want || (got.Reason == "PodSandboxNotReady") == met {
				t.Errorf("condition %+v", got)
			}
		})
	}
}

func TestResourcesInStatus(t *testing.T) {
	asking := func(cpu string) func(*corev1.Container) {
		return func(c *corev1.Container) {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}
	}
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, initC("i", asking("1500m")), mainC("a", asking("100m")), mainC("b", asking("200m"))))
	w.hold[StartContainer] = true
	w.settle()
	if st := w.status("a"); st.Resources != nil || st.AllocatedResources != nil {
		t.Errorf("never started, and has %+v", st.Resources)
	}
	w.hold = map[Kind]bool{}
	w.exits["i#0"] = 0
	w.land(KeyContainer("i"))
	w.settle()
	st := w.status("a")
	if st.AllocatedResources.Cpu().String() != "100m" || st.Resources.Requests.Cpu().String() != "100m" || st.Resources.Limits.Cpu().String() != "2" {
		t.Errorf("container %+v", st)
	}
	pod := w.plan.Status
	if pod.AllocatedResources.Cpu().String() != "1500m" || pod.Resources.Requests.Cpu().String() != "1500m" || pod.Resources.Limits.Cpu().String() != "4" {
		t.Errorf("pod %+v %+v", pod.AllocatedResources, pod.Resources)
	}
}

func TestRejectedByAnAgentBefore(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.want.Prior = &corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "Pod was rejected: no CPU"}
	w.settle()
	w.expectPhase(Cleaning, corev1.PodFailed)
	if s := w.plan.Status; s.Reason != "OutOfcpu" || s.Message != "Pod was rejected: no CPU" || len(s.ContainerStatuses) != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestPodThatMayRestartAllSaysWhetherItDoes(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a", restarting("Never", rule(corev1.ContainerRestartRuleActionRestartAllContainers, corev1.ContainerRestartRuleOnExitCodesOpIn, 42)))))
	w.settle()
	if c := w.condition(corev1.AllContainersRestarting); c.Status != corev1.ConditionFalse || c.Reason != "" {
		t.Errorf("condition %+v", c)
	}
	w.exit("a-0", 1)
	w.settle()
	if c := w.condition(corev1.AllContainersRestarting); c.Status != corev1.ConditionFalse || c.Reason != "PodFailed" {
		t.Errorf("condition %+v", c)
	}
}

func TestOwnsCondition(t *testing.T) {
	for kind, want := range map[corev1.PodConditionType]bool{
		corev1.PodReady: true, corev1.PodScheduled: true, corev1.PodReadyToStartContainers: true, corev1.AllContainersRestarting: true,
		corev1.DisruptionTarget: false, "example.com/gate": false,
	} {
		if OwnsCondition(kind) != want {
			t.Errorf("%s: %v", kind, !want)
		}
	}
}

// A static pod that the node's shutdown ended before it ran is told as failed,
// with an end for each container. After the node is up again it begins anew.
func TestAnEndGivenToWhatNeverRanIsNoRun(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyNever, mainC("a"), mainC("b")))
	w.want.Static = true
	w.hold[Admit] = true
	w.settle()
	w.stopNow(StopShutdown, 0)
	w.settle()
	w.expectPhase(Cleaning, corev1.PodFailed)
	w.expectState("a", "ContainerStatusUnknown(137)")

	w.want.Stop = nil
	w.hold[Admit] = false
	w.restartAgent()
	w.exits["b#0"] = 0
	w.settle()
	w.expectPhase(Running, corev1.PodRunning)
	w.expectState("a", "running")
	w.expectState("b", "Completed(0)")
	if n := w.status("a").RestartCount; n != 0 {
		t.Fatalf("the first run counts as restart %d", n)
	}
	w.exit("a-0", 0)
	w.settle()
	w.expectPhase(Cleaning, corev1.PodSucceeded)
}

// What was told of the containers of a pod that ended stays told, also when its
// sandbox is gone and when another agent tells it.
func TestEndsOfAPodThatEndedStayTold(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		wantA string
	}{
		"before its init container": {newPod(corev1.RestartPolicyNever, initC("i"), mainC("a"), mainC("b")), "PodInitializing"},
		"before its containers":     {newPod(corev1.RestartPolicyNever, mainC("a"), mainC("b")), "ContainerStatusUnknown(137)"},
		"after its sidecar":         {newPod(corev1.RestartPolicyNever, sidecar("s"), mainC("a"), mainC("b")), "ContainerStatusUnknown(137)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.pod)
			w.hold[Pull] = true
			w.settle()
			if _, flying := w.busy[KeyImage("s")]; flying {
				w.land(KeyImage("s"))
				w.settle()
			}
			w.stopNow(StopDeleted, 0)
			w.hold[RemovePodDir] = true
			w.settle()
			w.expectState("a", tc.wantA)
			before := stateStrings(w)
			w.restartAgent()
			w.settle()
			if after := stateStrings(w); after != before {
				t.Fatalf("told %s, before the restart %s", after, before)
			}
		})
	}
}

func stateStrings(w *world) string {
	var all []string
	s := w.plan.Status
	for _, st := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		all = append(all, st.Name+" "+st.ContainerID+" "+stateString(st.State))
	}
	return strings.Join(all, ", ")
}
