package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/cluster/world"
)

// TestNodeVolumes has pods use volumes that need no driver, and such as nobody
// can mount.
func TestNodeVolumes(t *testing.T) {
	require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	runScenarios(t, e, []scenario{
		{"LocalVolume", localVolume},
		{"HostPathVolume", hostPathVolume},
		{"NotMountable", notMountable},
	})
	for _, fault := range e.watch.drain() {
		t.Error(fault)
	}
}

// nodeVolume makes a PersistentVolume of a kind that needs no driver, and its
// claim.
func (e *env) nodeVolume(t *testing.T, ns, source, more string) {
	t.Helper()
	e.applyIn(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: %[1]s, name: data}
  %[2]s
%[3]s---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: "", volumeName: %[1]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: BUSYBOX
    command: [sh, -c, "echo kept > /data/file && echo kept > /sub/file && exec sleep 10000"]
    volumeMounts: [{name: data, mountPath: /data}, {name: data, mountPath: /sub, subPath: deep/er}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`, ns, source, indent(more)))
}

// writes waits for the files of such a pod, deletes it, and checks that they are
// left, and no directory of the pod is.
func (e *env) writes(t *testing.T, ns, dir string) {
	t.Helper()
	p := e.untilPod(t, patience, ns, "app", ready)
	files := []string{filepath.Join(dir, "file"), filepath.Join(dir, "deep/er/file")}
	check := func() error {
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil || string(text) != "kept\n" {
				return fmt.Errorf("%s: %q, %w", file, text, err)
			}
		}
		return nil
	}
	e.eventually(t, patience, check)
	e.kubectl(t, "-n", ns, "delete", "pod", "app", "--timeout=60s")
	e.eventually(t, patience, func() error {
		if _, err := os.Lstat(filepath.Join(e.Nodes[0].Agent.Root, "pods", string(p.UID))); !os.IsNotExist(err) {
			return fmt.Errorf("the pod's directory is still there: %w", err)
		}
		return nil
	})
	if err := check(); err != nil {
		t.Error(err)
	}
}

// localVolume: the scheduler knows where it is, and the agent mounts it.
func localVolume(t *testing.T, e *env, ns string) {
	dir := t.TempDir()
	e.nodeVolume(t, ns, "local: {path: "+dir+"}",
		"nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-0]}]}]}}")
	e.writes(t, ns, dir)
}

func hostPathVolume(t *testing.T, e *env, ns string) {
	dir := filepath.Join(t.TempDir(), "made")
	e.nodeVolume(t, ns, "hostPath: {path: "+dir+", type: DirectoryOrCreate}", "")
	e.writes(t, ns, dir)
}

// notMountable: users hear why, in one event for each problem.
func notMountable(t *testing.T, e *env, ns string) {
	dir := t.TempDir()
	for name, tc := range map[string]struct{ source, want string }{
		"no-configmap": {"configMap: {name: absent}", `MountVolume.SetUp failed for volume "data" : configmap "absent" not found`},
		"no-secret":    {"secret: {secretName: absent}", `MountVolume.SetUp failed for volume "data" : secret "absent" not found`},
		"no-key":       {"configMap: {name: kube-root-ca.crt, items: [{key: absent, path: x}]}", "references non-existent config key: absent"},
		"no-claim":     {"persistentVolumeClaim: {claimName: absent}", `failed to fetch PVC from API server: persistentvolumeclaims "absent" not found`},
		"no-directory": {"hostPath: {path: " + dir + "/absent, type: Directory}", "hostPath type check failed"},
		"gitrepo":      {"gitRepo: {repository: https://example.test/repo}", "git-repo volume plugin has been disabled"},
		"glusterfs":    {"glusterfs: {endpoints: cluster, path: vol}", "glusterfs volumes are not supported any more"},
		"cephfs":       {"cephfs: {monitors: [example.test]}", "cephfs volumes are not supported any more: use a PersistentVolume of the CSI driver cephfs.csi.ceph.com"},
	} {
		t.Run(name, func(t *testing.T) {
			e.applyIn(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  nodeName: node-0
  containers: [{name: main, image: BUSYBOX, command: [sleep, "10000"], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, %s}]
`, name, tc.source))
			e.eventually(t, patience, func() error { return e.failedMount(t, ns, name, tc.want) })
			p := e.untilPod(t, patience, ns, name, func(*corev1.Pod) error { return nil })
			if p.Status.Phase != corev1.PodPending {
				t.Errorf("the pod is %s: %s", p.Status.Phase, summary(p))
			}
			e.kubectl(t, "-n", ns, "delete", "pod", name, "--timeout=60s")
		})
	}
}

// failedMount wants one FailedMount event of a pod that says so.
func (e *env) failedMount(t *testing.T, ns, pod, want string) error {
	t.Helper()
	var list corev1.EventList
	if err := e.core.Get().Namespace(ns).Resource("events").Param("fieldSelector", "involvedObject.name="+pod).Do(t.Context()).Into(&list); err != nil {
		return err
	}
	var said []string
	n := 0
	for _, event := range list.Items {
		said = append(said, event.Reason+": "+event.Message)
		if strings.Contains(event.Message, want) {
			n++
			if event.Reason != "FailedMount" && event.Reason != "Failed" {
				return fmt.Errorf("the reason is %s", event.Reason)
			}
		}
	}
	if n != 1 {
		return fmt.Errorf("%d events say %q, want one; all:\n%s", n, want, strings.Join(said, "\n"))
	}
	return nil
}
