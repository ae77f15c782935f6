package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// A node as kubeadm left it, its API server away, under a real systemd: the
// unit gets ready, feeds its watchdog, runs the static pods, and leaves them
// alone when it is started again or stopped.
func TestKubeadmNode(t *testing.T) {
	shortenWatchdog(t)
	startNode(t)
	wantProperties(t, "kubelet", map[string]string{"ActiveState": "active", "SubState": "running", "Type": "notify", "WatchdogUSec": "10s"})
	givePod(t, "static", "{}")
	container := containerOf(awaitRunning(t, "static"))
	awaitWatchdog(t, 2)

	mustRun(t, "systemctl", "restart", "kubelet")
	eventually(t, "the pod is seen again", func(ctx context.Context) error {
		pod, err := podNamed(ctx, "static")
		if err != nil {
			return err
		}
		if pod == nil || len(pod.Status.ContainerStatuses) != 1 {
			return fmt.Errorf("the kubelet says %+v", pod)
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

// watchdog is a short one: the test sees several periods.
const watchdog = 10 * time.Second

func shortenWatchdog(t *testing.T) {
	t.Helper()
	const dir = "/etc/systemd/system/kubelet.service.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "20-watchdog.conf"), fmt.Sprintf("[Service]\nWatchdogSec=%v\n", watchdog))
	mustRun(t, "systemctl", "daemon-reload")
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		if _, err := command(context.WithoutCancel(t.Context()), "systemctl", "daemon-reload"); err != nil {
			t.Error(err)
		}
	})
}

// awaitWatchdog waits until the kubelet has fed the watchdog for some periods.
func awaitWatchdog(t *testing.T, periods time.Duration) {
	t.Helper()
	eventually(t, "the watchdog is fed", func(ctx context.Context) error {
		said, err := properties(ctx, "kubelet", "ActiveEnterTimestampMonotonic", "WatchdogTimestampMonotonic", "NRestarts", "ActiveState")
		if err != nil {
			return err
		}
		since, errSince := strconv.ParseInt(said["ActiveEnterTimestampMonotonic"], 10, 64)
		fed, errFed := strconv.ParseInt(said["WatchdogTimestampMonotonic"], 10, 64)
		if err := errors.Join(errSince, errFed); err != nil {
			return err
		}
		if said["NRestarts"] != "0" || said["ActiveState"] != "active" {
			t.Fatalf("the unit did not stay up: %v", said)
		}
		if fed < since+(periods*watchdog).Microseconds() {
			return fmt.Errorf("last fed %d µs after its start, of %d periods of %v: %v", fed-since, periods, watchdog, said)
		}
		return nil
	})
}
