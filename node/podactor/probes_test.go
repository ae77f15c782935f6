package podactor_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// prober notes what it is asked for, and knows what it is told to know.
type prober struct {
	log   list[string]
	knows func(podactor.ProbeRequest) lifecycle.Probe
}

func (p *prober) Watch(req podactor.ProbeRequest) (podactor.ProbeResult, error) {
	p.log.add("watch " + req.Run.Container)
	result := podactor.ProbeResult{UID: string(req.Pod.UID), Container: req.Run.Container}
	result.Probe = p.knows(req)
	return result, nil
}
func (p *prober) Rest(req podactor.ProbeRequest)       { p.log.add("rest " + req.Run.Container) }
func (p *prober) Forget(uid string)                    { p.log.add("forget " + uid) }
func (p *prober) Results() <-chan podactor.ProbeResult { return nil }

func (p *prober) want(t *testing.T, want ...string) {
	t.Helper()
	if got := p.log.get(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func probedPod() *corev1.Pod {
	return actortest.Pod("u1", "web", func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} })
}

func readyIs(ready bool) func(podactor.ProbeRequest) lifecycle.Probe {
	return func(req podactor.ProbeRequest) lifecycle.Probe {
		return lifecycle.Probe{ContainerID: req.Run.ContainerID, Ready: &ready}
	}
}

// TestProber: a run is watched once, its end rests it, the pod's end forgets it.
func TestProber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prober{knows: readyIs(false)}
		s := newStage(t, probedPod(), func(s *stage) { s.parts.Prober = p })
		s.after(time.Minute)
		p.want(t, "watch app")
		if ready(s.Last("u1")) {
			t.Error("ready before the prober said so")
		}
		id := s.Seen(t, "u1").Containers[0].ID
		yes := true
		s.actor.Probe("app", lifecycle.Probe{ContainerID: id, Ready: &yes})
		synctest.Wait()
		if !ready(s.Last("u1")) {
			t.Error("not ready, as the prober said")
		}
		s.actor.Tell(lifecycle.Event{Reason: "Unhealthy"})
		s.stop(lifecycle.StopDeleted, 30*time.Second)
		s.gone(5 * time.Second)
		p.want(t, "watch app", "rest app", "forget u1")
		if !slices.Contains(s.Events("u1"), "Unhealthy") {
			t.Errorf("events %v", s.Events("u1"))
		}
	})
}

// TestProberKnowsMoreAfterARestart: no status is told without what the prober
// kept from the agent before.
func TestProberKnowsMoreAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prober{knows: readyIs(true)}
		s := newStage(t, probedPod(), func(s *stage) { s.parts.Prober = p })
		s.after(time.Second)
		s.kill()
		<-s.done
		told := len(s.Statuses("u1"))
		s.start()
		s.after(time.Minute)
		updates := s.Statuses("u1")[told:]
		for _, update := range updates {
			if !ready(update) {
				t.Errorf("readiness flapped: %+v", update.Status.Conditions)
			}
		}
		if len(updates) == 0 {
			t.Error("nothing was told")
		}
	})
}

// TestProberThatFails is left alone, and the pod goes on.
func TestProberThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &prober{knows: func(podactor.ProbeRequest) lifecycle.Probe { panic(fmt.Errorf("no stethoscope")) }}
		s := newStage(t, probedPod(), func(s *stage) { s.parts.Prober = p })
		s.after(time.Second)
		s.wantRunning(1)
		s.stop(lifecycle.StopDeleted, time.Second)
		s.gone(5 * time.Second)
	})
}
