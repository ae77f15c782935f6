package exampletest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"nodekit.dev/runtime/runtimetest"
)

// asProgram makes the test binary the program itself.
const asProgram = "NODEKIT_EXAMPLE_PROGRAM"

// Main is the TestMain of an example whose test runs it as a process: the test
// binary, started again by Program, is the program.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Program runs the example's main function as a process of its own. Stop sends
// SIGTERM and wants exit code 0.
func Program(t testing.TB, args ...string) *Running {
	t.Helper()
	return Run(t, func(ctx context.Context, out io.Writer) error {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		cmd.Stdout, cmd.Stderr = out, out
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = limit
		err := cmd.Run()
		if errors.Is(err, context.Canceled) && cmd.ProcessState.ExitCode() == 0 {
			return nil
		}
		return err
	})
}

// Kubelet writes what a kubelet needs to run one static pod on a World (a
// configuration file, with more documents behind it, and the pod's manifest),
// and gives the flags.
func Kubelet(t testing.TB, w *runtimetest.World, manifest, documents string) []string {
	t.Helper()
	manifests, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(manifests, "pod.yaml"), manifest)
	file := write(t, filepath.Join(dir, "kubelet.yaml"), fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: %s
staticPodPath: %s
podLogsDir: %s
healthzPort: 0
oomScoreAdj: 0
cgroupsPerQOS: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
maxOpenFiles: 1
failCgroupV1: false
logging: {flushFrequency: 100ms}
%s`, w.Serve(t, t.TempDir()).Endpoint(), manifests, filepath.Join(t.TempDir(), "pods"), documents))
	return []string{"--config", file, "--root-dir", t.TempDir(), "--hostname-override", "node1", "--node-ip", "192.0.2.1"}
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
