package bench

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/cluster/follow"
	measure "nodekit.dev/test/integration/bench"
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

// TestPodsDifferInVolumesAlone: what the part volumes measures is theirs.
func TestPodsDifferInVolumesAlone(t *testing.T) {
	with, without := podWithVolumes("a", "n"), podWithoutVolumes("a", "n")
	if len(with.Spec.Volumes) != 5 || len(with.Spec.Containers[0].VolumeMounts) != 5 {
		t.Errorf("%d volumes, %d mounts", len(with.Spec.Volumes), len(with.Spec.Containers[0].VolumeMounts))
	}
	with.Spec.Volumes, with.Spec.Containers[0].VolumeMounts = nil, nil
	if !reflect.DeepEqual(with, without) {
		t.Errorf("%+v\n%+v", with.Spec, without.Spec)
	}
	pairs := measure.Pairs{Bare: []time.Duration{100, 110, 90}, Agent: []time.Duration{105, 117, 200}}
	if got := more(pairs); got != 7 {
		t.Errorf("%v more", got)
	}
}

// TestAllowed: the targets of bursts, as the report prints and judges them.
func TestAllowed(t *testing.T) {
	bare := measure.Together{2 * time.Second, 10 * time.Second}
	for _, row := range []struct {
		took    time.Duration
		times   float64
		verdict string
	}{
		{11 * time.Second, readyTimes, "<= 11.0  ok"}, {11100 * time.Millisecond, readyTimes, "<= 11.0  MISSED"},
		{12500 * time.Millisecond, goneTimes, "<= 12.5  ok"}, {12600 * time.Millisecond, goneTimes, "<= 12.5  MISSED"},
	} {
		report, table := &measure.Report{}, &strings.Builder{}
		report.Add("burst", row.took.Seconds(), "s", measure.AtMost(allowed(bare, row.times)))
		if err := report.Print(table); err != nil || !strings.Contains(table.String(), row.verdict) || report.OK() != strings.HasSuffix(row.verdict, "ok") {
			t.Errorf("%v: no %q in %s (%v)", row.took, row.verdict, table, err)
		}
	}
	if got := allowed(bare, readyTimes); got != 11.02 {
		t.Errorf("%v s are allowed", got)
	}
}
