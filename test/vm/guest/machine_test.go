package guest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The machine is what the other tests need it to be.
func TestMachine(t *testing.T) {
	if name := readFile(t, "/proc/1/comm"); name != "systemd" {
		t.Errorf("init is %q, not systemd", name)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		t.Errorf("/sys/fs/cgroup is of type %#x (%v), not cgroup v2", fs.Type, err)
	}
	controllers := strings.Fields(readFile(t, "/sys/fs/cgroup/cgroup.controllers"))
	for _, c := range []string{"cpuset", "cpu", "io", "memory", "pids"} {
		if !slices.Contains(controllers, c) {
			t.Errorf("the controller %s is not among %v", c, controllers)
		}
	}
	for node, cpus := range map[string]string{"node0": "0-1", "node1": "2-3"} {
		if got := readFile(t, filepath.Join("/sys/devices/system/node", node, "cpulist")); got != cpus {
			t.Errorf("the CPUs of %s are %s, want %s", node, got, cpus)
		}
	}
	delay := mustRun(t, "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec")
	if !strings.HasPrefix(delay, "t ") {
		t.Errorf("logind says %q", delay)
	}
}
