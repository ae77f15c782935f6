package guest

import (
	"context"
	"fmt"
	"strconv"
	"testing"
)

// A node as kubeadm left it, its API server away, under a real systemd: the
// unit gets ready, feeds its watchdog, runs the static pods, and leaves them
// alone when it is started again or stopped.
func TestKubeadmNode(t *testing.T) {
	startNode(t)
	wantProperties(t, "kubelet", map[string]string{"ActiveState": "active", "SubState": "running", "Type": "notify", "WatchdogUSec": "6s"})
	container := containerOf(runPod(t, "static", "{}"))
	awaitWatchdog(t, 3)

	mustRun(t, "systemctl", "restart", "kubelet")
	eventually(t, "the pod is seen again", func(ctx context.Context) error {
		pod, err := podNamed(ctx, "static")
		if err != nil || pod == nil || len(pod.Status.ContainerStatuses) != 1 {
			return fmt.Errorf("pod %v, %w", pod, err)
		}
		if s := pod.Status.ContainerStatuses[0]; containerOf(pod) != container || s.RestartCount != 0 || s.State.Running == nil {
			return fmt.Errorf("container %s became %+v", container, s)
		}
		return nil
	})
	cgroupOf(t, container) // it runs

	mustRun(t, "systemctl", "stop", "kubelet")
	wantProperties(t, "kubelet", map[string]string{"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0", "NRestarts": "0"})
	cgroupOf(t, container)
	mustRun(t, "systemctl", "start", "kubelet")
}

// awaitWatchdog waits until the kubelet has fed the watchdog for some periods.
func awaitWatchdog(t *testing.T, periods int) {
	t.Helper()
	const period = 6_000_000 // µs, of 20-watchdog.conf
	eventually(t, "the watchdog is fed", func(ctx context.Context) error {
		said, err := properties(ctx, "kubelet", "ActiveEnterTimestampMonotonic", "WatchdogTimestampMonotonic", "NRestarts", "ActiveState")
		if err != nil {
			return err
		}
		since, err := strconv.Atoi(said["ActiveEnterTimestampMonotonic"])
		if err != nil {
			return err
		}
		fed, err := strconv.Atoi(said["WatchdogTimestampMonotonic"])
		if err != nil {
			return err
		}
		if said["NRestarts"] != "0" || said["ActiveState"] != "active" {
			t.Fatalf("the unit did not stay up: %v", said)
		}
		if fed < since+periods*period {
			return fmt.Errorf("last fed after %d of %d µs: %v", fed-since, periods*period, said)
		}
		return nil
	})
}
