package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/testbed"
)

// versioned is a pod whose container says which version of it runs.
func versioned(name string, version int) *corev1.Pod {
	c := shell("main", untilTerm)
	c.Env = []corev1.EnvVar{{Name: "VERSION", Value: fmt.Sprint(version)}}
	return newPod(name, c)
}

// isVersion wants a ready pod of that version.
func isVersion(version int) condition {
	return all(ready, func(p corev1.Pod) error {
		if got := p.Spec.Containers[0].Env[0].Value; got != fmt.Sprint(version) {
			return fmt.Errorf("%s is version %s, not %d", p.UID, got, version)
		}
		return nil
	})
}

// staticChange: another content is another pod, and the old one goes first.
func staticChange(t *testing.T, e *env) {
	e.apply(t, versioned("change", 1))
	first := e.until(t, "change", isVersion(1))
	stop := e.watchOneAlive(t, first.Name)
	e.apply(t, versioned("change", 2))
	second := e.until(t, "change", isVersion(2))
	if first.UID == second.UID {
		t.Errorf("both versions have the UID %s", first.UID)
	}
	e.gone(t, first)
	stop()
	e.remove(t, "change")
	e.gone(t, second)
}

// staticRapidChange: many edits in a moment end with the last one, with one
// pod alive at a time and no restart of the agent (k/k#107900).
func staticRapidChange(t *testing.T, e *env) {
	stop := e.watchOneAlive(t, "rapid-"+testbed.NodeName)
	const last = 20
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for v := 1; v <= last; v++ {
		e.apply(t, versioned("rapid", v))
		<-tick.C
	}
	e.untilWithin(t, 2*patience, "rapid", isVersion(last))
	eventually(t, patience, func() error {
		pods, err := e.podsNamed(t.Context(), "rapid")
		if err == nil && len(pods) != 1 {
			err = fmt.Errorf("the agent still knows %d pods of that name", len(pods))
		}
		return err
	})
	stop()
}

// watchOneAlive checks until stop that no two containers of a pod name run at
// once.
func (e *env) watchOneAlive(t *testing.T, podName string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			list, err := e.bed.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
				State:         &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
				LabelSelector: map[string]string{"io.kubernetes.pod.name": podName},
			}})
			if err == nil && len(list.GetContainers()) > 1 {
				t.Errorf("%d containers of pod %s run at once: %v", len(list.Containers), podName, list.Containers)
				return
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// staticAwayAndBack: a manifest that is moved away and back comes back each
// time (k/k#107695).
func staticAwayAndBack(t *testing.T, e *env) {
	e.apply(t, versioned("away", 1))
	e.until(t, "away", isVersion(1))
	parked := filepath.Join(e.bed.Dir, "parked")
	for _, gap := range []time.Duration{0, 50 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		if err := os.Rename(e.manifest("away"), parked); err != nil {
			t.Fatal(err)
		}
		<-time.After(gap)
		if err := os.Rename(parked, e.manifest("away")); err != nil {
			t.Fatal(err)
		}
	}
	// The one that was on its way out counts as ready until the agent saw that
	// it is: wait until there is one pod, and it stays.
	eventually(t, patience, func() error {
		pods, err := e.podsNamed(t.Context(), "away")
		if err != nil {
			return err
		}
		if len(pods) != 1 {
			return fmt.Errorf("the agent knows %d pods of that name", len(pods))
		}
		return ready(pods[0])
	})
}

// staticBadManifests: none of them disturbs another pod or stops the agent.
func staticBadManifests(t *testing.T, e *env) {
	e.apply(t, versioned("good", 1))
	before := e.until(t, "good", isVersion(1))
	e.write(t, "not-yaml", "{ not: [yaml")
	e.write(t, "not-a-pod", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n")
	e.write(t, "no-containers", "apiVersion: v1\nkind: Pod\nmetadata: {name: empty}\nspec: {}\n")
	e.write(t, "oversize", "# "+strings.Repeat("x", 11<<20))
	e.write(t, "half", "apiVersion: v1\nkind: Pod\nmetadata: {name: ha")
	whole := versioned("half", 1)
	e.apply(t, whole) // the writer has finished
	e.until(t, "half", isVersion(1))
	after := e.until(t, "good", isVersion(1))
	old, _ := statusOf(before, "main")
	if now, _ := statusOf(after, "main"); now.ContainerID != old.ContainerID || after.UID != before.UID {
		t.Errorf("a good pod was disturbed: %+v, then %+v", old, now)
	}
	eventually(t, patience, func() error {
		log := e.agent.Log(100_000)
		for _, file := range []string{"not-yaml.yaml", "not-a-pod.yaml", "no-containers.yaml", "oversize.yaml"} {
			if !strings.Contains(log, file) {
				return fmt.Errorf("the agent's log says nothing of %s", file)
			}
		}
		return nil
	})
}

// staticFixedUID: under one UID another image replaces the container, and
// another environment does not: as in stock, a container's hash is of its name
// and image.
func staticFixedUID(t *testing.T, e *env) {
	pod := versioned("fixed", 1)
	pod.UID = "11111111-2222-3333-4444-555555555555"
	e.apply(t, pod)
	first := e.until(t, "fixed", isVersion(1))
	if first.UID != pod.UID {
		t.Errorf("the pod has the UID %s, not the one of its manifest", first.UID)
	}

	other := testbed.RegistryHost + "/fixed:1"
	img, err := testbed.BusyboxFrom(t.Context(), v1.Config{Env: []string{"PATH=/bin", "OTHER=image"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.bed.Registry.Push(t.Context(), other, img); err != nil {
		t.Fatal(err)
	}
	pod = versioned("fixed", 2)
	pod.UID, pod.Spec.Containers[0].Image = first.UID, other
	e.apply(t, pod)
	second := e.until(t, "fixed", all(isVersion(2), restarts("main", 1)))
	if second.UID != first.UID {
		t.Errorf("the pod's UID changed from %s to %s", first.UID, second.UID)
	}
	if env := e.execIn(t, second, "main", "env"); !strings.Contains(env, "VERSION=2\n") || !strings.Contains(env, "OTHER=image\n") {
		t.Errorf("the new container has the environment %q", env)
	}

	pod = versioned("fixed", 3)
	pod.UID, pod.Spec.Containers[0].Image = first.UID, other
	e.apply(t, pod)
	third := e.until(t, "fixed", isVersion(3))
	old, _ := statusOf(second, "main")
	if now, _ := statusOf(third, "main"); now.ContainerID != old.ContainerID {
		t.Errorf("another environment replaced container %s by %s", old.ContainerID, now.ContainerID)
	}
}

// execIn runs a command in the pod's running container, behind the agent's back.
func (e *env) execIn(t *testing.T, pod corev1.Pod, container string, cmd ...string) string {
	t.Helper()
	c, _ := statusOf(pod, container)
	reply, err := e.bed.CRI().ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{
		ContainerId: bareID(c), Cmd: cmd, Timeout: 10,
	})
	if err != nil || reply.GetExitCode() != 0 {
		t.Fatalf("exec %q in %s of %s: %v %s", cmd, container, pod.Name, err, reply.GetStderr())
	}
	return string(reply.GetStdout())
}
