package status_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// probe says of the container "app" of a pod what a prober would.
func (s *stage) probe(uid string, ready bool) {
	s.Helper()
	for _, c := range s.Seen(s.T, uid).Containers {
		if c.Name == "app" && c.State == runtime.ContainerRunning {
			started := true
			s.agent.node.Probe(uid, "app", lifecycle.Probe{ContainerID: c.ID, Started: &started, Ready: &ready})
		}
	}
	synctest.Wait()
}

// history is how the conditions of a pod, or of the mirror of a static pod,
// changed at the API server.
func (s *stage) history(uid string, mirror *corev1.Pod) string {
	if mirror != nil && mirror.Annotations[runtime.AnnotationConfigMirror] == uid {
		uid = string(mirror.UID)
	}
	text := ""
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled, corev1.PodReadyToStartContainers,
	} {
		text += string(kind) + ": " + s.transitions(types.UID(uid), kind) + "; "
	}
	return text
}

func TestMirrorPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.manifest(manifestPod("s1", "static"))
		s.after(time.Second)
		mirror := s.wantPhase("static", corev1.PodRunning)
		owner := mirror.OwnerReferences
		if mirror.UID == "s1" || mirror.Annotations[runtime.AnnotationConfigMirror] != "s1" || mirror.Annotations[runtime.AnnotationConfigHash] != "s1" ||
			mirror.Annotations[runtime.AnnotationConfigSource] != "file" || mirror.Annotations[runtime.AnnotationConfigSeen] != "today" ||
			len(owner) != 1 || owner[0].Kind != "Node" || owner[0].APIVersion != "v1" || owner[0].UID != "node-worker-1" || !*owner[0].Controller {
			t.Errorf("mirror %+v", mirror.ObjectMeta)
		}
		if c := condition(mirror, corev1.PodReady); c.Status != corev1.ConditionTrue {
			t.Errorf("ready %+v", c)
		}
		if pods := s.agent.node.Pods(); len(pods) != 1 {
			t.Errorf("pods %+v", pods)
		}

		// Deleted by a user: the static pod runs on, under a new mirror.
		s.api.Delete("default", "static", 30)
		s.after(time.Second)
		next := s.wantPhase("static", corev1.PodRunning)
		if next.UID == mirror.UID || s.Running(t, "s1") != 1 || s.Calls(runtimetest.MethodRunSandbox) != 1 {
			t.Errorf("mirror %s, %d sandboxes", next.UID, s.Calls(runtimetest.MethodRunSandbox))
		}
		s.api.Delete("default", "static", 0)
		s.after(time.Second)
		s.wantPhase("static", corev1.PodRunning)

		// Another manifest: another pod, another mirror.
		s.manifest(manifestPod("s2", "static"))
		s.after(5 * time.Second)
		if next := s.wantPhase("static", corev1.PodRunning); next.Annotations[runtime.AnnotationConfigMirror] != "s2" {
			t.Errorf("mirror %+v", next.ObjectMeta)
		}

		s.manifest()
		s.after(time.Minute)
		s.wantGone("static")
		s.CheckEmpty()
	})
}

func TestMirrorOutlivesTheStaticPodsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.Script("app", runtimetest.Behaviour{TermDelay: 20 * time.Second})
		s.manifest(manifestPod("s1", "static"))
		s.after(time.Second)
		s.manifest(manifestPod("s2", "static"))
		s.after(10 * time.Second)
		if mirror := s.api.Pod("default", "static"); mirror == nil || mirror.Annotations[runtime.AnnotationConfigMirror] != "s1" {
			t.Errorf("mirror %+v", mirror)
		}
		s.after(time.Minute)
		if mirror := s.wantPhase("static", corev1.PodRunning); mirror.Annotations[runtime.AnnotationConfigMirror] != "s2" {
			t.Errorf("mirror %+v", mirror)
		}
	})
}

func TestMirrorWaitsForTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) {
			s.api.Refuse(func(req *http.Request) (int, string) {
				if req.URL.Path == "/api/v1/nodes/worker-1" {
					return http.StatusNotFound, "NotFound"
				}
				return 0, ""
			})
		})
		s.manifest(manifestPod("s1", "static"))
		s.after(10 * time.Minute)
		s.wantGone("static")
		if s.Running(t, "s1") != 1 {
			t.Error("the static pod does not run")
		}
		s.api.Refuse(nil)
		s.agent.writer.Kick()
		synctest.Wait()
		s.wantPhase("static", corev1.PodRunning)
	})
}

func TestMirrorsWhileTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(s *stage) { s.api.Away(true) })
		s.manifest(manifestPod("s1", "one"), manifestPod("s2", "two"))
		s.after(time.Hour)
		if s.Running(t, "s1") != 1 {
			t.Error("the static pod does not run")
		}
		s.manifest(manifestPod("s1", "one"))
		s.after(time.Hour)
		s.api.Away(false)
		s.after(15 * time.Second)
		s.wantPhase("one", corev1.PodRunning)
		s.wantGone("two")
	})
}

func TestMirrorsThatAnEarlierAgentLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.manifest(manifestPod("s1", "stays"), manifestPod("s2", "goes"), manifestPod("s3", "changes"))
		s.after(time.Second)
		stays := s.wantPhase("stays", corev1.PodRunning)
		s.stop()
		s.manifest(manifestPod("s1", "stays"), manifestPod("s4", "changes"))
		s.start()
		s.after(time.Minute)
		if now := s.wantPhase("stays", corev1.PodRunning); now.UID != stays.UID {
			t.Error("a mirror was made anew for nothing")
		}
		s.wantGone("goes")
		if now := s.wantPhase("changes", corev1.PodRunning); now.Annotations[runtime.AnnotationConfigMirror] != "s4" {
			t.Errorf("mirror %+v", now.ObjectMeta)
		}
	})
}

func TestPodOfTheSameNameIsInTheWayOfAMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.api.Create(pod("u1", "static", func(p *corev1.Pod) { p.Spec.NodeName = "worker-2" }))
		s.manifest(manifestPod("s1", "static"))
		s.after(10 * time.Minute)
		if other := s.api.Pod("default", "static"); other.UID != "u1" || other.Status.Phase != corev1.PodPending {
			t.Errorf("the other pod: %+v", other)
		}
		s.api.Delete("default", "static", 0)
		s.after(time.Minute)
		s.wantPhase("static", corev1.PodRunning)
	})
}

func TestMirrorOfAPodWhoseManifestCanNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.manifest(manifestPod("s1", "static"))
		s.after(time.Second)
		mirror := s.wantPhase("static", corev1.PodRunning)
		s.stop()
		s.static.unclear = true
		s.manifest()
		s.start()
		s.after(time.Hour)
		if now := s.wantPhase("static", corev1.PodRunning); now.UID != mirror.UID || s.Running(t, "s1") != 1 {
			t.Errorf("mirror %s, %d containers", now.UID, s.Running(t, "s1"))
		}
		s.static.unclear = false
		s.manifest()
		s.after(time.Minute)
		s.wantGone("static")
		s.CheckEmpty()
	})
}

// A node that lost its runtime's state starts its static pods anew; a mirror
// whose pod has ended can not be taken back to running.
func TestStaticPodThatRunsAnewGetsAnotherMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.manifest(manifestPod("s1", "static"))
		s.after(time.Second)
		mirror := s.wantPhase("static", corev1.PodRunning)
		s.agent.node.StopPod("s1", lifecycle.Stop{
			Reason: lifecycle.StopEvicted, StatusReason: "Evicted", Message: "The node was low on resource: memory.", At: time.Now(),
		})
		s.after(time.Minute)
		failed := s.wantPhase("static", corev1.PodFailed)
		if c := condition(failed, corev1.DisruptionTarget); failed.UID != mirror.UID || failed.Status.Reason != "Evicted" || c.Reason != corev1.PodReasonTerminationByKubelet {
			t.Errorf("mirror %s: %+v", failed.UID, failed.Status)
		}
		s.restart() // which forgets the eviction, as the stock kubelet does
		s.after(time.Minute)
		if next := s.wantPhase("static", corev1.PodRunning); next.UID == mirror.UID {
			t.Error("the phase of a mirror was taken back")
		}
	})
}
