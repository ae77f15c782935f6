package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

func TestFailedPulls(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	failing := true
	w.fail = func(a Action) *Failure {
		if a.Kind == Pull && failing {
			return &Failure{Reason: "ErrImagePull", Message: "not found", RetryAt: w.now.Add(10 * time.Second)}
		}
		return nil
	}
	w.settle()
	w.took()
	w.expectState("a", "ErrImagePull")
	w.expectPhase(Preparing, corev1.PodPending)
	w.after(5 * time.Second)
	w.expect()
	if got := w.status("a").State.Waiting; got.Reason != "ImagePullBackOff" ||
		got.Message != `Back-off pulling image "img/a": ErrImagePull: not found` {
		t.Fatalf("waiting %+v", got)
	}
	w.after(5 * time.Second)
	w.expect("Pull a")
	w.expectState("a", "ErrImagePull")
	failing = false
	w.after(10 * time.Second)
	w.expectState("a", "running")
	events := strings.Join(w.event, "\n")
	for _, want := range []string{`Failed: Failed to pull image "img/a": not found`, `BackOff: Back-off pulling image "img/a"`} {
		if !strings.Contains(events, want) {
			t.Errorf("no event %q in\n%s", want, events)
		}
	}
}

func TestFatalPullsAreNotRetriedUntilTheImageChanges(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.fail = func(a Action) *Failure {
		if a.Kind == Pull && a.Image == "img/a" {
			return &Failure{Reason: "InvalidImageName", Message: "bad", Fatal: true}
		}
		return nil
	}
	w.settle()
	w.took()
	w.after(time.Hour)
	w.expect()
	w.expectState("a", "InvalidImageName")
	w.want.Pod = w.want.Pod.DeepCopy()
	w.want.Pod.Spec.Containers[0].Image = "img/good"
	w.settle()
	w.expect("Pull a", "StartContainer a#0")
}

func TestPullOfAnotherImageIsCancelled(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.hold[Pull] = true
	w.settle()
	w.took()
	w.want.Pod = w.want.Pod.DeepCopy()
	w.want.Pod.Spec.Containers[0].Image = "img/new"
	w.settle()
	w.expect("cancel image/a", "Pull a")
}

func TestFatalStartFailureIsShownAndNotRetried(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.fail = func(a Action) *Failure {
		if a.Kind == StartContainer {
			return &Failure{Reason: "CreateContainerConfigError", Message: "no such user", Fatal: true}
		}
		return nil
	}
	w.settle()
	w.took()
	w.after(time.Hour)
	w.expect()
	w.expectState("a", "CreateContainerConfigError")
}

func TestFailedStepsWaitAndTell(t *testing.T) {
	for kind, reason := range map[Kind]string{
		Mount: "FailedMount", RunSandbox: "FailedCreatePodSandBox", EnsureCgroup: "FailedCreatePodContainer",
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", mounting("v")), volumes("v")))
			failures := 1
			w.fail = func(a Action) *Failure {
				if a.Kind == kind && failures > 0 {
					failures--
					return &Failure{Reason: reason, Message: "no luck", RetryAt: w.now.Add(3 * time.Second)}
				}
				return nil
			}
			w.settle()
			w.expectPhase(Preparing, corev1.PodPending)
			told := "no luck"
			if kind == RunSandbox {
				told = "Failed to create pod sandbox: no luck"
			}
			if !w.plan.Wake.Equal(w.now.Add(3*time.Second)) || !slices.Contains(w.event, reason+": "+told) {
				t.Fatalf("wake %s, events %q", w.plan.Wake, w.event)
			}
			w.after(3 * time.Second)
			w.expectPhase(Running, corev1.PodRunning)
		})
	}
}

func TestSandboxChanges(t *testing.T) {
	t.Run("it died", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a"), mainC("b")))
		w.settle()
		w.took()
		w.now = w.now.Add(time.Minute)
		w.exit("a-0", 137)
		list := slices.Clone(w.seen.Runtime.Sandboxes)
		list[0].Ready, list[0].IPs = false, nil
		w.seen.Runtime.Sandboxes = list
		w.settle()
		w.expect("StopContainer b 30s", "StopSandbox sb0", "RunSandbox 1", "StartContainer a#1", "StartContainer b#1")
		if !slices.Contains(w.event, "SandboxChanged: Pod sandbox changed, it will be killed and re-created.") {
			t.Fatalf("events %q", w.event)
		}
	})
	t.Run("no new one for a pod that is done", func(t *testing.T) {
		for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
			w := newWorld(t, newPod(policy, mainC("a")))
			w.settle()
			w.took()
			w.exit("a-0", 0)
			w.endSandbox(Action{SandboxID: "sb0"})
			w.settle()
			w.expect("StopSandbox sb0", "RemoveCgroup")
			w.expectPhase(Cleaning, corev1.PodSucceeded)
		}
	})
	t.Run("one that never held a container is removed", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.hold[Pull] = true
		w.settle()
		w.took()
		w.now = w.now.Add(time.Minute)
		w.endSandbox(Action{SandboxID: "sb0"})
		w.settle()
		w.expect("RemoveSandbox sb0", "RunSandbox 0")
	})
	t.Run("its network changes", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.settle()
		w.took()
		w.now = w.now.Add(time.Minute)
		w.want.Pod = w.want.Pod.DeepCopy()
		w.want.Pod.Spec.HostNetwork = true
		w.settle()
		w.expect("StopContainer a 30s", "StopSandbox sb0", "RunSandbox 1", "StartContainer a#1")
	})
	t.Run("of several the newest stays", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.settle()
		w.took()
		w.addSandbox(1)
		w.settle()
		w.expect("StopContainer a 30s", "StopSandbox sb0", "StartContainer a#1")
	})
	t.Run("one that dies at once is not remade in a tight loop", func(t *testing.T) {
		w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
		w.settle()
		w.took()
		w.exit("a-0", 137)
		w.endSandbox(Action{SandboxID: "sb0"})
		w.settle()
		w.expect("StopSandbox sb0")
		w.after(time.Second)
		w.expect("RunSandbox 1", "StartContainer a#1")
	})
}

func TestTwoCopiesBecomeOne(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	w.took()
	w.addContainer(w.newContainer("a", 1, "sb0"))
	w.addContainer(w.newContainer("other", 0, "sb0"))
	w.settle()
	w.expect("StopContainer a 30s", "StopContainer other 30s")
	if got := w.alive(); !slices.Equal(got, []string{"a-1"}) {
		t.Fatalf("alive %v", got)
	}
}

func TestTransitionTimesAreStable(t *testing.T) {
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a")))
	w.settle()
	ready := w.condition(corev1.PodReady).LastTransitionTime
	first := jsonOf(t, w.plan.Status)
	w.after(time.Hour)
	w.restartAgent()
	w.settle()
	if got := jsonOf(t, w.plan.Status); got != first {
		t.Fatalf("was %s\nis  %s", first, got)
	}
	w.now = w.now.Add(time.Minute)
	w.hold[StartContainer] = true
	w.exit("a-0", 1)
	w.settle()
	if got := w.condition(corev1.PodReady); got.Status != corev1.ConditionFalse || !got.LastTransitionTime.After(ready.Time) {
		t.Fatalf("condition %+v", got)
	}
}

func TestReadinessGatesAndForeignConditions(t *testing.T) {
	pod := newPod(corev1.RestartPolicyAlways, mainC("a"))
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x/lb"}}
	w := newWorld(t, pod)
	w.settle()
	if c := w.condition(corev1.PodReady); c.Reason != "ReadinessGatesNotReady" || c.Status != corev1.ConditionFalse {
		t.Fatalf("condition %+v", c)
	}
	w.want.Prior = &corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "x/lb", Status: corev1.ConditionTrue}}}
	w.settle()
	if w.condition(corev1.PodReady).Status != corev1.ConditionTrue || w.condition("x/lb").Status != corev1.ConditionTrue {
		t.Fatalf("conditions %+v", w.plan.Status.Conditions)
	}
}

func TestPodIPs(t *testing.T) {
	for name, tc := range map[string]struct {
		fromRuntime, host []string
		hostNetwork       bool
		want              []string
	}{
		"plain":                       {[]string{"10.1.0.5"}, []string{"10.0.0.1"}, false, []string{"10.1.0.5"}},
		"node's family first":         {[]string{"10.1.0.5", "fd00::5"}, []string{"fd01::1", "10.0.0.1"}, false, []string{"fd00::5", "10.1.0.5"}},
		"one per family":              {[]string{"10.1.0.5", "10.1.0.6"}, []string{"10.0.0.1"}, false, []string{"10.1.0.5"}},
		"canonical":                   {[]string{"fd00:0::0005"}, nil, false, []string{"fd00::5"}},
		"host, v4":                    {nil, []string{"10.0.0.1"}, true, []string{"10.0.0.1"}},
		"host, both":                  {nil, []string{"10.0.0.1", "fd01::1234"}, true, []string{"10.0.0.1", "fd01::1234"}},
		"host, runtime says one":      {[]string{"192.168.0.1"}, []string{"10.0.0.1", "fd01::1234"}, true, []string{"192.168.0.1", "fd01::1234"}},
		"host, runtime says both":     {[]string{"fd00::9", "192.168.0.1"}, []string{"10.0.0.1", "fd01::1"}, true, []string{"192.168.0.1", "fd00::9"}},
		"host, node's second is same": {nil, []string{"10.0.0.1", "10.0.0.2"}, true, []string{"10.0.0.1"}},
		"host, node has none":         {nil, nil, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PodIPs(tc.fromRuntime, tc.host, tc.hostNetwork); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// k/k#107845 and the rules of what is told of containers that nobody saw end.
func TestSettleLost(t *testing.T) {
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, tc := range map[string]struct {
		inits, mains []corev1.ContainerState
		want         string
	}{
		"no inits, never started":      {nil, []corev1.ContainerState{waiting}, "| 137"},
		"no inits, ended":              {nil, []corev1.ContainerState{ended(0), waiting}, "| 0 137"},
		"init never started":           {[]corev1.ContainerState{waiting}, []corev1.ContainerState{waiting}, "137 | -"},
		"only the first of two inits":  {[]corev1.ContainerState{waiting, waiting}, []corev1.ContainerState{waiting}, "137 - | -"},
		"second init ran":              {[]corev1.ContainerState{ended(0), running, waiting}, []corev1.ContainerState{waiting}, "0 137 - | -"},
		"init failed":                  {[]corev1.ContainerState{ended(1)}, []corev1.ContainerState{waiting}, "1 | -"},
		"init succeeded, main did not": {[]corev1.ContainerState{ended(0)}, []corev1.ContainerState{waiting}, "0 | 137"},
		"one main ran":                 {[]corev1.ContainerState{waiting}, []corev1.ContainerState{ended(0), waiting}, "137 | 0 137"},
	} {
		t.Run(name, func(t *testing.T) {
			var s corev1.PodStatus
			for _, st := range tc.inits {
				s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{State: st})
			}
			for _, st := range tc.mains {
				s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{State: st})
			}
			d := &decision{pod: newPod(corev1.RestartPolicyAlways)}
			d.settleLost(&s)
			var got []string
			for _, st := range s.InitContainerStatuses {
				got = append(got, codeOf(st))
			}
			got = append(got, "|")
			for _, st := range s.ContainerStatuses {
				got = append(got, codeOf(st))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, want %q", strings.Join(got, " "), tc.want)
			}
		})
	}
}

func codeOf(st corev1.ContainerStatus) string {
	if st.State.Terminated == nil {
		return "-"
	}
	return strconv.Itoa(int(st.State.Terminated.ExitCode))
}

func TestTerminatedReasons(t *testing.T) {
	for _, tc := range []struct {
		run  runtime.Container
		want string
	}{
		{runtime.Container{}, "Completed"},
		{runtime.Container{ExitCode: 1}, "Error"},
		{runtime.Container{ExitCode: 137, Reason: "OOMKilled"}, "OOMKilled"},
	} {
		if got := terminated(tc.run, "containerd").Reason; got != tc.want {
			t.Errorf("%+v: %s", tc.run, got)
		}
	}
}

func TestMerge(t *testing.T) {
	stop := func(reason StopReason, at, grace time.Duration) *Stop {
		return &Stop{Reason: reason, At: t0.Add(at), Grace: grace}
	}
	for name, tc := range map[string]struct {
		old, next *Stop
		reason    StopReason
		killAt    time.Duration
	}{
		"first":             {nil, stop(StopDeleted, 0, 30), StopDeleted, 30},
		"sticky":            {stop(StopDeleted, 0, 30), nil, StopDeleted, 30},
		"shorter":           {stop(StopDeleted, 0, 30), stop(StopDeleted, 5, 10), StopDeleted, 15},
		"longer":            {stop(StopDeleted, 0, 30), stop(StopDeleted, 5, 60), StopDeleted, 30},
		"leaving outranks":  {stop(StopEvicted, 0, 1), stop(StopDeleted, 5, 60), StopDeleted, 1},
		"keeping does not":  {stop(StopDeleted, 0, 30), stop(StopEvicted, 5, 1), StopDeleted, 6},
		"already past once": {stop(StopDeleted, 20, 30), stop(StopDeleted, 0, 5), StopDeleted, 20},
	} {
		t.Run(name, func(t *testing.T) {
			got := Want{Stop: tc.old}.Merge(Want{Stop: tc.next}).Stop
			if got.Reason != tc.reason || !got.KillAt().Equal(t0.Add(tc.killAt)) {
				t.Errorf("got %s at %s", got.Reason, got.KillAt().Sub(t0))
			}
		})
	}
}

func TestUserAndMountsOfAContainer(t *testing.T) {
	enabled, ifPossible := corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible
	w := newWorld(t, newPod(corev1.RestartPolicyAlways, mainC("a", func(c *corev1.Container) {
		c.VolumeMounts = []corev1.VolumeMount{
			{Name: "v", MountPath: "/rw"},
			{Name: "v", MountPath: "/ro", ReadOnly: true},
			{Name: "v", MountPath: "/must", ReadOnly: true, RecursiveReadOnly: &enabled},
			{Name: "v", MountPath: "/can", ReadOnly: true, RecursiveReadOnly: &ifPossible},
			{Name: "v", MountPath: "/cannot", ReadOnly: true, RecursiveReadOnly: &ifPossible},
		}
	}), volumes("v")))
	w.settle()
	if w.status("a").User != nil {
		t.Error("a user that the runtime did not tell")
	}
	w.setContainer("a-0", func(c *runtime.Container) {
		c.User = &runtime.ContainerUser{UID: 7, GID: 8, SupplementalGroups: []int64{8, 9}}
		c.RecursiveReadOnly = []string{"/must", "/can"}
	})
	w.settle()
	st := w.status("a")
	if u := st.User; u == nil || u.Linux.UID != 7 || u.Linux.GID != 8 || !slices.Equal(u.Linux.SupplementalGroups, []int64{8, 9}) {
		t.Errorf("user %+v", u)
	}
	var got []string
	for _, m := range st.VolumeMounts {
		mode := "-"
		if m.RecursiveReadOnly != nil {
			mode = string(*m.RecursiveReadOnly)
		}
		got = append(got, m.Name+" "+m.MountPath+" "+mode)
	}
	if want := []string{"v /rw -", "v /ro Disabled", "v /must Enabled", "v /can Enabled", "v /cannot Disabled"}; !slices.Equal(got, want) {
		t.Errorf("mounts %q, want %q", got, want)
	}
}
