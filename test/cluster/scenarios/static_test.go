package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/test/cluster/world"
)

// TestStatic: the API server sees static pods by their mirrors, which come
// back when they are deleted, and go with the manifest.
func TestStatic(t *testing.T) {
	require(t)
	manifests := t.TempDir()
	e := newEnv(t, world.Options{}, world.AgentOptions{Manifests: manifests})
	e.writeManifest(t, manifests, "static")
	mirror := e.untilPod(t, patience, "default", "static-node-0", ready)
	container := mirror.Status.ContainerStatuses[0].ContainerID
	for _, key := range []string{"kubernetes.io/config.mirror", "kubernetes.io/config.hash", "kubernetes.io/config.source", "kubernetes.io/config.seen"} {
		if mirror.Annotations[key] == "" {
			t.Errorf("the mirror has no annotation %s: %v", key, mirror.Annotations)
		}
	}
	if owners := mirror.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Node" || owners[0].Name != "node-0" {
		t.Errorf("the mirror's owners are %+v", owners)
	}
	if said := e.kubectl(t, "exec", "static-node-0", "--", "echo", "hello"); said != "hello\n" {
		t.Errorf("exec in a static pod by its mirror: %q", said)
	}

	e.kubectl(t, "delete", "pod", "static-node-0", "--wait=false")
	again := e.untilPod(t, patience, "default", "static-node-0", otherThan(mirror.UID))
	if id := again.Status.ContainerStatuses[0].ContainerID; id != container {
		t.Errorf("to delete the mirror restarted the pod: it was %s and is %s", container, id)
	}

	if err := os.Remove(filepath.Join(manifests, "static.yaml")); err != nil {
		t.Fatal(err)
	}
	e.untilPods(t, patience, "default", allOf(0, nil))
}

const localObjects = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: place}, data: {at: roof}}
---
{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {user: root}}
`

const localPod = `
apiVersion: v1
kind: Pod
metadata: {name: local, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: BUSYBOX
    command: [sleep, "10000"]
    env: [{name: AT, valueFrom: {configMapKeyRef: {name: place, key: at}}}]
    volumeMounts: [{name: login, mountPath: /login}]
  volumes: [{name: login, secret: {secretName: login}}]
`

// TestLocalObjects: static pods have what the node's folder says, and a mirror
// that the API server takes; its own pods have its own objects.
func TestLocalObjects(t *testing.T) {
	require(t)
	manifests, objects := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(objects, "all.yaml"): localObjects, filepath.Join(manifests, "local.yaml"): manifest(localPod),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := newEnv(t, world.Options{}, world.AgentOptions{Manifests: manifests, Flags: []string{"--local-objects-dir=" + objects}})
	t.Cleanup(func() { _ = os.Remove(filepath.Join(manifests, "local.yaml")) })
	mirror := e.untilPod(t, patience, "default", "local-node-0", ready)
	if mirror.Annotations["nodekit.dev/local-objects"] == "" {
		t.Errorf("the mirror does not tell of local objects: %v", mirror.Annotations)
	}
	shows := func(ns, pod, want string) {
		t.Helper()
		if got := e.kubectl(t, "-n", ns, "exec", pod, "--", "sh", "-c", "echo $AT $(cat /login/user)"); got != want+"\n" {
			t.Errorf("%s has %q, want %q", pod, got, want)
		}
	}
	shows("default", "local-node-0", "roof root")

	ns := e.namespace(t, "local")
	e.kubectl(t, "-n", ns, "create", "configmap", "place", "--from-literal=at=sky")
	e.kubectl(t, "-n", ns, "create", "secret", "generic", "login", "--from-literal=user=cloud")
	e.applyIn(t, ns, manifest(strings.ReplaceAll(localPod, ", namespace: default", "")))
	e.untilPod(t, patience, ns, "local", ready)
	shows(ns, "local", "sky cloud")
}

// TestRestart stops the agent in order and starts it again: the API server sees
// no change of any pod.
func TestRestart(t *testing.T) {
	require(t)
	manifests := t.TempDir()
	e := newEnv(t, world.Options{}, world.AgentOptions{Manifests: manifests})
	ns := e.namespace(t, "restart")
	e.writeManifest(t, manifests, "static")
	e.applyIn(t, ns, webDeployment)
	e.kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=110s")
	static := e.untilPod(t, patience, "default", "static-node-0", ready)
	agent := e.Nodes[0].Agent
	if err := agent.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What was asked for after the restart comes after all that it brought.
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)
	if now := e.untilPod(t, patience, "default", "static-node-0", ready); now.UID != static.UID {
		t.Errorf("the mirror was made anew: it was %s and is %s", static.UID, now.UID)
	}
	for _, fault := range e.watch.drain() {
		t.Error(fault)
	}
}

func otherThan(uid types.UID) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.UID == uid {
			return fmt.Errorf("%s is still %s", p.Name, uid)
		}
		return ready(p)
	}
}
