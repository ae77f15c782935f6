package status

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// apiPod is the API server's copy of a pod.
func apiPod(uid types.UID, phase corev1.PodPhase, deleting bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: "5"}, Status: corev1.PodStatus{Phase: phase}}
	if deleting {
		pod.DeletionTimestamp = &early
	}
	return pod
}

func mirrorPod(uid types.UID, of string, phase corev1.PodPhase, deleting bool) *corev1.Pod {
	pod := apiPod(uid, phase, deleting)
	pod.Annotations = map[string]string{runtime.AnnotationConfigMirror: of}
	return pod
}

func says(phase lifecycle.Phase, status corev1.PodPhase) *node.StatusUpdate {
	return &node.StatusUpdate{UID: "u", Phase: phase, Status: corev1.PodStatus{Phase: status}}
}

func staticSays(uid string, phase lifecycle.Phase, informed bool) *node.StatusUpdate {
	u := says(phase, corev1.PodRunning)
	u.UID, u.Static, u.Informed = uid, true, informed
	u.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{runtime.AnnotationConfigHash: uid}}}
	return u
}

func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		view view
		want verb
	}{
		"nothing said":             {view{has: apiPod("u", "Pending", false)}, doNothing},
		"nothing there":            {view{says: says(lifecycle.Running, "Running")}, doNothing},
		"as it should be":          {view{has: apiPod("u", "Running", false), says: says(lifecycle.Running, "Running")}, doNothing},
		"another phase":            {view{has: apiPod("u", "Pending", false), says: says(lifecycle.Running, "Running")}, doPatch},
		"a patch in vain":          {view{has: apiPod("u", "Pending", false), says: says(lifecycle.Running, "Running"), inVain: []byte(`{"phase":"Running"}`)}, doNothing},
		"going, runs still":        {view{has: apiPod("u", "Running", true), says: says(lifecycle.Stopping, "Running")}, doNothing},
		"going, ended":             {view{has: apiPod("u", "Running", true), says: says(lifecycle.Cleaning, "Succeeded")}, doPatch},
		"going, told, not clean":   {view{has: apiPod("u", "Succeeded", true), says: says(lifecycle.Cleaning, "Succeeded")}, doNothing},
		"going, clean":             {view{has: apiPod("u", "Succeeded", true), says: says(lifecycle.Finished, "Succeeded")}, doDelete},
		"going, clean, not told":   {view{has: apiPod("u", "Running", true), says: says(lifecycle.Finished, "Succeeded")}, doPatch},
		"going, deletion accepted": {view{has: apiPod("u", "Succeeded", true), says: says(lifecycle.Finished, "Succeeded"), deleted: "u"}, doNothing},
		"clean, not asked to go":   {view{has: apiPod("u", "Succeeded", false), says: says(lifecycle.Finished, "Succeeded")}, doNothing},

		"no mirror":                     {view{mirror: true, synced: true, says: staticSays("s", lifecycle.Queued, false)}, doCreate},
		"no mirror known yet":           {view{mirror: true, says: staticSays("s", lifecycle.Queued, false)}, doNothing},
		"no mirror of what stops":       {view{mirror: true, synced: true, says: staticSays("s", lifecycle.Stopping, false)}, doNothing},
		"mirror, node not reminded":     {view{mirror: true, says: staticSays("s", lifecycle.Running, false), has: mirrorPod("m", "s", "Pending", false)}, doRemind},
		"mirror, node reminded of old":  {view{mirror: true, says: staticSays("s", lifecycle.Running, true), has: mirrorPod("m", "s", "Pending", false), reminded: mirrorPod("m0", "s", "Pending", false)}, doRemind},
		"mirror, node did not speak":    {view{mirror: true, says: staticSays("s", lifecycle.Running, false), has: mirrorPod("m", "s", "Pending", false), reminded: mirrorPod("m", "s", "Pending", false)}, doNothing},
		"mirror, node spoke":            {view{mirror: true, says: staticSays("s", lifecycle.Running, true), has: mirrorPod("m", "s", "Pending", false), reminded: mirrorPod("m", "s", "Pending", false)}, doPatch},
		"mirror of an earlier life":     {view{mirror: true, says: staticSays("s", lifecycle.Running, true), has: mirrorPod("m", "s", "Failed", false), reminded: mirrorPod("m", "s", "Failed", false)}, doDelete},
		"mirror of another":             {view{mirror: true, says: staticSays("s", lifecycle.Running, true), has: mirrorPod("m", "old", "Running", false)}, doDelete},
		"mirror that a user deletes":    {view{mirror: true, says: staticSays("s", lifecycle.Running, true), has: mirrorPod("m", "s", "Running", true)}, doDelete},
		"and that is going":             {view{mirror: true, says: staticSays("s", lifecycle.Running, true), has: mirrorPod("m", "s", "Running", true), deleted: "m"}, doNothing},
		"mirror of nobody, too early":   {view{mirror: true, has: mirrorPod("m", "s", "Running", false)}, doNothing},
		"mirror of nobody":              {view{mirror: true, has: mirrorPod("m", "s", "Running", false), unwanted: true}, doDelete},
		"mirror of what has ended here": {view{mirror: true, says: staticSays("s", lifecycle.Finished, true), has: mirrorPod("m", "s", "Running", false), unwanted: true}, doDelete},
	} {
		t.Run(name, func(t *testing.T) {
			tc.view.now = time.Now()
			if got, err := next(tc.view); err != nil || got.verb != tc.want {
				t.Errorf("got %q, %v, want %q: %s", got.verb, err, tc.want, got.body)
			}
		})
	}
}

// A phase that others set meanwhile must not be run over.
func TestPhaseIsPatchedOnlyOnTheCopyAtHand(t *testing.T) {
	got, err := next(view{has: apiPod("u", "Pending", false), says: says(lifecycle.Running, "Running"), now: early.Time})
	if err != nil || string(got.body) != `{"metadata":{"resourceVersion":"5","uid":"u"},"status":{"phase":"Running"}}` {
		t.Errorf("patch %s, %v", got.body, err)
	}
}
