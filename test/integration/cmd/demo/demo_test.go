package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/integration/testbed"
)

const samples = "../../../../examples/manifests"

// TestRunOnce is RUN_ONCE=1 make run.
func TestRunOnce(t *testing.T) {
	testbed.Require(t)
	if err := run(t.Context(), samples, true); err != nil {
		t.Fatal(err)
	}
}

// TestInterrupt: Ctrl-C at any moment ends it without an error, and so with all
// removed.
func TestInterrupt(t *testing.T) {
	testbed.Require(t)
	for _, after := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if err := run(ctx, samples, false); err != nil {
			t.Errorf("interrupted after %v: %v", after, err)
		}
		cancel()
	}
}

func TestCompare(t *testing.T) {
	pod := func(name string, change func(*corev1.PodStatus)) corev1.Pod {
		p := corev1.Pod{}
		p.Namespace, p.Name = "default", name+"-"+testbed.NodeName
		change(&p.Status)
		return p
	}
	running := func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	crashing := func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"},
		}}}
	}
	for _, c := range []struct {
		want string
		pods []corev1.Pod
		err  string
	}{
		{"Running", []corev1.Pod{pod("a", running)}, ""},
		{"CrashLoopBackOff", []corev1.Pod{pod("a", crashing)}, ""},
		{"Running", []corev1.Pod{pod("a", crashing)}, "pod a: should be Running, is CrashLoopBackOff: [c: back-off 10s]"},
		{"Succeeded", []corev1.Pod{pod("a", running)}, "pod a: should be Succeeded, is Running"},
		{"Running", []corev1.Pod{pod("b", running)}, "pod a: should be Running, but the agent does not know it"},
	} {
		err := compare([]expectation{{namespace: "default", name: "a", state: c.want}}, c.pods)
		if got := fmt.Sprint(errors.Join(err)); got != cmp.Or(c.err, "<nil>") {
			t.Errorf("got %s, want %s", got, c.err)
		}
	}
}
