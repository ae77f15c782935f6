package bench

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/cluster/follow"
)

func TestSights(t *testing.T) {
	s := newSights()
	pod := newPod("a", "node-0")
	s.changed(follow.Change[*corev1.Pod]{New: pod}) // of somebody else
	one := s.expect("a")
	told := func() [2]int { return [2]int{len(one.ready), len(one.gone)} }

	s.changed(follow.Change[*corev1.Pod]{New: pod})
	if told() != [2]int{} || s.last("a") != pod {
		t.Errorf("created: %v", told())
	}
	ready := pod.DeepCopy()
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.changed(follow.Change[*corev1.Pod]{New: ready})
	s.changed(follow.Change[*corev1.Pod]{New: ready}) // keeps the first time, and does not block
	if told() != [2]int{1, 0} {
		t.Errorf("ready: %v", told())
	}
	s.changed(follow.Change[*corev1.Pod]{New: ready, Gone: true})
	if told() != [2]int{1, 1} {
		t.Errorf("gone: %v", told())
	}
	if again := s.expect("a"); len(again.ready)+len(again.gone) != 0 || s.last("a") != nil {
		t.Error("a new pod of the name is told of what happened to the old one")
	}
}
