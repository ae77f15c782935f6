package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nodekit.dev/examples/internal/exampletest"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// TestLocalObjects: the pod has what the folder says, and a change of a file
// reaches its volume while it runs.
func TestLocalObjects(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "appliance", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir = t.TempDir(), t.TempDir()
	cfg.CRI.Endpoint = w.Serve(t, t.TempDir()).Endpoint()
	text, err := os.ReadFile("objects/sensor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := t.TempDir()
	file := filepath.Join(objects, "sensor.yaml")
	write(t, file, string(text))
	program := exampletest.Run(t, func(ctx context.Context, out io.Writer) error { return run(ctx, cfg, "pods", objects, out) })
	program.Await("default/sensor-appliance: Running\n")
	pod := exampletest.Pod(t, w, "sensor-appliance")
	container, _ := w.ContainerConfig(pod.Containers[0].ID)
	for _, want := range []runtime.EnvVar{{Name: "SITE", Value: "north"}, {Name: "UPLINK_PASSWORD", Value: "not-very-secret"}} {
		if !slices.Contains(container.Env, want) {
			t.Errorf("no %v in %v", want, container.Env)
		}
	}
	write(t, file, strings.Replace(string(text), `"30"`, `"5"`, 1))
	interval := filepath.Join(container.Mounts[0].HostPath, "interval")
	late, tick := time.After(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for read(t, interval) != "5" {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the volume says %q", read(t, interval))
		}
	}
	program.Stop()
	exampletest.Pod(t, w, "sensor-appliance") // runs on
}

// write replaces a file as a whole, as editors do.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
