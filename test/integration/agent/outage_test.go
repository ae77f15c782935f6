package agent

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// outage is how long containerd is away.
const outage = 30 * time.Second

// TestOutage stops containerd for a while under a living agent: pods that ran
// run on untouched, and what was asked for meanwhile is done afterwards.
func TestOutage(t *testing.T) {
	t.Parallel() // it mostly waits
	eachContainerd(t, func(t *testing.T, version string) {
		e := newEnv(t, version)
		const pods = 5
		for i := range pods {
			e.apply(t, versioned(fmt.Sprintf("stays-%d", i), 1))
		}
		e.apply(t, versioned("goes", 1))
		e.apply(t, versioned("changes", 1))
		before := map[string]string{}
		for i := range pods {
			name := fmt.Sprintf("stays-%d", i)
			status, _ := statusOf(e.until(t, name, isVersion(1)), "main")
			before[name] = status.ContainerID
		}
		goes := e.until(t, "goes", isVersion(1))
		changes := e.until(t, "changes", isVersion(1))
		pid := e.agent.PID()

		if err := e.bed.KillRuntime(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.remove(t, "goes")
		e.apply(t, versioned("changes", 2))
		e.apply(t, versioned("comes", 1))
		<-time.After(outage)
		if err := e.bed.StartRuntime(t.Context()); err != nil {
			t.Fatal(err)
		}

		e.untilWithin(t, patience, "comes", isVersion(1))
		e.untilWithin(t, patience, "changes", isVersion(2))
		e.gone(t, goes)
		e.gone(t, changes)
		for name, id := range before {
			status, _ := statusOf(e.until(t, name, isVersion(1)), "main")
			if status.ContainerID != id || status.RestartCount != 0 {
				t.Errorf("%s was container %s and is %s, with %d restarts", name, id, status.ContainerID, status.RestartCount)
			}
		}
		if !e.agent.Alive() || e.agent.PID() != pid {
			t.Error("the agent did not live through the outage")
		}
	})
}

// TestRestart stops the agent in order and starts it again: the pods run on
// meanwhile and afterwards, and never look unready to a reader of their status.
func TestRestart(t *testing.T) {
	t.Parallel()
	eachContainerd(t, restart)
}

func restart(t *testing.T, version string) {
	e := newEnv(t, version)
	e.apply(t, newPod("runs-on", web("web", "-root=/etc")))
	before := e.until(t, "runs-on", ready)
	url := "http://" + before.Status.PodIP + ":8080/passwd"
	if err := e.agent.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	fetch(t, url, "nobody")
	e.apply(t, versioned("new", 1)) // came while nobody looked
	if err := e.agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := e.until(t, "runs-on", func(p corev1.Pod) error {
		if p.Status.Phase == "" {
			return fmt.Errorf("%s has no status yet", p.UID)
		}
		return nil
	})
	if err := ready(after); err != nil {
		t.Errorf("the first status after a restart: %v", err)
	}
	old, _ := statusOf(before, "web")
	if now, _ := statusOf(after, "web"); now.ContainerID != old.ContainerID || after.Status.PodIP != before.Status.PodIP {
		t.Errorf("it was %+v, and is %+v", old, now)
	}
	fetch(t, url, "nobody")
	e.until(t, "new", isVersion(1))
}
