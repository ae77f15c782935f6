package main

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"

	"nodekit.dev/examples/internal/exampletest"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

func TestNoFx(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "no-fx", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir = t.TempDir(), t.TempDir()
	cfg.CRI.Endpoint = w.Serve(t, t.TempDir()).Endpoint()
	program := exampletest.Run(t, func(ctx context.Context, out io.Writer) error { return run(ctx, cfg, "busybox", out) })
	program.Await("default/sleeper: Running\n")
	program.Stop()
	exampletest.Pod(t, w, "sleeper")
}

// TestIsWithoutFx: nothing of fx is in the program.
func TestIsWithoutFx(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "go.uber.org/fx") {
		t.Error("fx is among the dependencies")
	}
}
