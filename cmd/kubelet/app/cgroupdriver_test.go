package app

import (
	"strings"
	"testing"

	"nodekit.dev/runtime/runtimetest"
)

// TestRuntimesCgroupDriver: what the runtime tells goes before what is
// configured; the runtime here fails the test for a cgroup of the wrong form.
func TestRuntimesCgroupDriver(t *testing.T) {
	b := newBed(t)
	b.world = runtimetest.NewWorld(t, runtimetest.Config{CgroupDriver: "systemd"})
	b.endpoint = b.world.Serve(t, t.TempDir()).Endpoint()
	b.manifest(t)
	logs, stop := start(t, b.flags(t, "cgroupDriver: cgroupfs\n"))
	b.awaitRunning(t)
	if code := stop(); code != 0 || !strings.Contains(logs.String(), "the runtime's cgroup driver is used instead") {
		t.Errorf("exit code %d, logs:\n%s", code, logs)
	}
}
