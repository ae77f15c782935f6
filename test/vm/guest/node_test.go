package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// startNode starts the kubelet, which runs on after the test, so that its pods
// can end. `systemctl start` returns when the kubelet said that it is ready.
func startNode(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			for _, unit := range []string{"containerd", "kubelet"} {
				log, err := command(context.WithoutCancel(t.Context()), "journalctl", "-u", unit, "-n", "60", "-o", "short-monotonic", "--no-hostname")
				t.Logf("the end of the journal of %s (%v):\n%s", unit, err, log)
			}
		}
	})
	if err := os.MkdirAll(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "systemctl", "start", "kubelet")
}

const manifests = "/etc/kubernetes/manifests"

// givePod gives the kubelet a static pod, which is gone after the test.
func givePod(t *testing.T, name, resources string) {
	t.Helper()
	file := filepath.Join(manifests, name+".yaml")
	writeFile(t, file, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: registry.nodekit.test/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, "trap 'exit 0' TERM; sleep 100000 & wait"]
    resources: %s
`, name, resources))
	t.Cleanup(func() {
		takePod(t, name)
		// A test that failed may have left it stopped.
		if _, err := command(context.WithoutCancel(t.Context()), "systemctl", "start", "kubelet"); err != nil {
			t.Error(err)
		}
		awaitGone(t, name)
	})
}

// awaitRunning returns the pod when its container runs.
func awaitRunning(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "pod "+name+" runs", func(ctx context.Context) (err error) {
		if pod, err = podNamed(ctx, name); err != nil {
			return err
		}
		if pod == nil {
			return fmt.Errorf("the kubelet has no such pod")
		}
		if s := pod.Status.ContainerStatuses; len(s) != 1 || s[0].State.Running == nil {
			status, _ := json.Marshal(pod.Status) // it was JSON before
			return fmt.Errorf("its status is %s", status)
		}
		return nil
	})
	return pod
}

// takePod takes the pod's manifest away.
func takePod(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(manifests, name+".yaml")); err != nil {
		t.Error(err)
	}
}

// awaitGone waits until the kubelet knows nothing of the pod any more.
func awaitGone(t *testing.T, name string) {
	t.Helper()
	eventually(t, "pod "+name+" is gone", func(ctx context.Context) error {
		pod, err := podNamed(ctx, name)
		if err == nil && pod != nil {
			err = fmt.Errorf("the kubelet still has it: %s", pod.Status.Phase)
		}
		return err
	})
}

// podNamed asks the kubelet for a static pod; nil: it has none of that name.
func podNamed(ctx context.Context, name string) (*corev1.Pod, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", "/var/lib/kubelet/nodekit.sock")
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://kubelet/pods", nil)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var list corev1.PodList
	if err := json.NewDecoder(reply.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("/pods: %s: %w", reply.Status, err)
	}
	for _, pod := range list.Items {
		if pod.Name == name+"-node1" {
			return &pod, nil
		}
	}
	return nil, nil
}

// containerOf is the ID of the pod's only container.
func containerOf(pod *corev1.Pod) string {
	return strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
}

// cgroupOf asks containerd for the container's process, and the kernel for its
// cgroup.
func cgroupOf(t *testing.T, container string) string {
	t.Helper()
	tasks := mustRun(t, "ctr", "-n", "k8s.io", "tasks", "ls")
	found := regexp.MustCompile(`(?m)^` + container + `\s+(\d+)\s+RUNNING`).FindStringSubmatch(tasks)
	if found == nil {
		t.Fatalf("container %s does not run:\n%s", container, tasks)
	}
	return strings.TrimPrefix(readFile(t, "/proc/"+found[1]+"/cgroup"), "0::")
}
