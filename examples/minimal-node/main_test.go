package main

import (
	"context"
	"io"
	"testing"

	"nodekit.dev/examples/internal/exampletest"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

func TestMinimalNode(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "minimal", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir = t.TempDir(), t.TempDir()
	cfg.CRI.Endpoint = w.Serve(t, t.TempDir()).Endpoint()
	for range 2 { // the second run finds the pod of the first
		program := exampletest.Run(t, func(ctx context.Context, out io.Writer) error { return run(ctx, cfg, "busybox", out) })
		program.Await("default/sleeper: Running, machine Running\n")
		program.Stop()
		exampletest.Pod(t, w, "sleeper")
	}
	if n := w.Calls(runtimetest.MethodStartContainer); n != 1 {
		t.Errorf("the container was started %d times", n)
	}
}
