package scenarios

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/testbed"
)

func outage() time.Duration {
	if soaking {
		return 10 * time.Minute
	}
	return 2 * time.Minute
}

// TestAway takes the API server away for a while: pods run on and are restarted
// by their policy, static pods come and go, the agent itself may start anew,
// and when the API server is back, it learns of all that within seconds.
func TestAway(t *testing.T) {
	require(t)
	t.Parallel() // it mostly waits
	manifests := t.TempDir()
	e := newEnv(t, world.Options{}, world.AgentOptions{Manifests: manifests})
	ns := e.namespace(t, "away")
	n := e.Nodes[0]
	e.watch.exceptIn(ns) // one is meant to be restarted
	e.applyIn(t, ns, sleeper)
	e.applyIn(t, ns, `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: v1
kind: Pod
metadata: {name: restarts}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: go, emptyDir: {}}, {name: config, configMap: {name: settings}}]
  containers:
  - name: main
    image: WEB
    args: ["-root=/config"]
    readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: go, mountPath: /go}, {name: config, mountPath: /config}]
    envFrom: [{configMapRef: {name: settings}}]
`)
	steady := e.untilPod(t, patience, ns, "sleeper", ready)
	before := e.untilPod(t, patience, ns, "restarts", ready)

	if err := e.Plane.KillAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := time.Now().Add(outage())
	exitByRequest(t, before.Status.PodIP, 3)
	e.writeManifest(t, manifests, "static")
	e.eventually(t, patience, func() error { return e.agentSees(t, n, "static-node-0", ready) })
	e.eventually(t, patience, func() error {
		return e.agentSees(t, n, "restarts", func(p *corev1.Pod) error {
			if restarts(p, "main") != 1 {
				return fmt.Errorf("it was not restarted: %s", summary(p))
			}
			return ready(p)
		})
	})
	// An agent that starts without an API server leaves what runs as it is.
	if err := n.Agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.eventually(t, patience, func() error { return e.agentSees(t, n, "static-node-0", ready) })
	select {
	case <-time.After(time.Until(back)):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}

	if err := e.Plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	e.untilPod(t, patience, ns, "restarts", func(p *corev1.Pod) error {
		if restarts(p, "main") != 1 {
			return fmt.Errorf("the API does not know of the restart: %s", summary(p))
		}
		return ready(p)
	})
	e.untilPod(t, patience, "default", "static-node-0", ready)
	took := time.Since(since)
	t.Logf("statuses arrived %v after the API server was back", took.Round(10*time.Millisecond))
	if took > 15*time.Second {
		t.Errorf("statuses took %v to arrive", took)
	}
	e.untilNodes(t, patience, e.allReady)
	after := e.untilPod(t, patience, ns, "sleeper", ready)
	if now, was := after.Status.ContainerStatuses[0], steady.Status.ContainerStatuses[0]; now.ContainerID != was.ContainerID || now.RestartCount != 0 {
		t.Errorf("a pod that nobody touched was restarted: %s", summary(after))
	}
	e.kubectl(t, "-n", ns, "delete", "pod", "restarts", "--timeout=60s") // and all goes on
}

// TestLate starts an agent that must join by a token before there is an API
// server: its static pods run, and it joins when the API server comes.
func TestLate(t *testing.T) {
	require(t)
	t.Parallel() // it mostly waits
	e := newWorld(t, world.Options{})
	token, err := e.Plane.BootstrapToken(t.Context(), "lately", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	bootstrap, err := e.Plane.TokenKubeconfig("bootstrap", token)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Plane.KillAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	manifests, n := t.TempDir(), e.Nodes[0]
	e.writeManifest(t, manifests, "static")
	err = e.StartAgent(t.Context(), n, world.AgentOptions{
		Kubeconfig: filepath.Join(n.Bed.Dir, "joined.kubeconfig"), BootstrapKubeconfig: bootstrap, Manifests: manifests,
	})
	if err != nil {
		t.Fatal(err)
	}
	e.eventually(t, patience, func() error { return e.agentSees(t, n, "static-node-0", ready) })
	if err := e.Plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.untilNodes(t, patience, e.allReady)
	mirror := e.untilPod(t, patience, "default", "static-node-0", ready)
	if s := mirror.Status.ContainerStatuses[0]; s.RestartCount != 0 {
		t.Errorf("the static pod was restarted: %s", summary(mirror))
	}
}

// exitByRequest tells the server of the web image to end.
func exitByRequest(t *testing.T, podIP string, code int) {
	t.Helper()
	err := testbed.Post(t.Context(), fmt.Sprintf("http://%s:8080/exit?code=%d", podIP, code))
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		t.Fatalf("the server does not listen, and so can not be told to end: %v", err)
	case err != nil:
		t.Logf("the server ended before it answered: %v", err)
	}
}

// writeManifest makes a static pod that serves, in one step.
func (e *env) writeManifest(t *testing.T, folder, name string) {
	t.Helper()
	text := manifest(strings.ReplaceAll(`
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: BUSYBOX, command: [sleep, "10000"]}]
`, "NAME", name))
	tmp := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(folder, name+".yaml")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(filepath.Join(folder, name+".yaml")) })
}

// agentSees asks the agent itself, not the API server.
func (e *env) agentSees(t *testing.T, n *world.Node, pod string, want func(*corev1.Pod) error) error {
	pods, err := n.Agent.Pods(t.Context())
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.Name == pod {
			return want(&p)
		}
	}
	return fmt.Errorf("the agent does not know pod %s", pod)
}
