package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/daemon"
)

// readyTimeout bounds how long containerd may take to answer after its start.
const readyTimeout = 30 * time.Second

// StartRuntime starts containerd (again) and returns when it and its network
// are ready. Pods that ran before, run on.
func (b *Bed) StartRuntime(ctx context.Context) error {
	if b.containerd.Alive() {
		return nil
	}
	began := time.Now()
	program, path, err := b.program()
	if err != nil {
		return err
	}
	b.containerd, err = daemon.Start(daemon.Config{
		Program: program,
		Args:    []string{"--config", b.slot.path("containerd.toml")},
		Env:     append(os.Environ(), "PATH="+path),
		Log:     b.slot.path("containerd.log"),

		Namespace: b.Namespace,
	})
	if err != nil {
		return err
	}
	if err := b.waitReady(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, b.RuntimeLog(20))
	}
	b.log.Info("containerd is ready", "pid", b.containerd.PID(), "took", time.Since(began))
	return nil
}

// KillRuntime ends containerd with SIGKILL, as a crash would. The pods run on.
func (b *Bed) KillRuntime(ctx context.Context) error {
	return b.containerd.Kill(ctx)
}

// RuntimeLog returns the last lines of containerd's log.
func (b *Bed) RuntimeLog(lines int) string { return daemon.Tail(b.slot.path("containerd.log"), lines) }

// program is the containerd of this bed, and a PATH where it finds its own shim.
func (b *Bed) program() (program, path string, err error) {
	if b.Version == V16 {
		return "/usr/bin/containerd", os.Getenv("PATH"), nil
	}
	dir, err := containerdDir()
	return filepath.Join(dir, "containerd"), dir + ":" + os.Getenv("PATH"), err
}

func (b *Bed) waitReady(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if b.cri == nil {
		if b.cri, err = dialCRI(b.Socket); err != nil {
			return err
		}
	}
	return Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		if !b.containerd.Alive() {
			cancel()
			return fmt.Errorf("containerd ended by itself: %v", b.containerd.State())
		}
		reply, err := b.cri.runtime.Status(ctx, &runtimeapi.StatusRequest{})
		if err != nil {
			return err
		}
		for _, c := range reply.GetStatus().GetConditions() {
			if isReadiness(c.GetType()) && !c.GetStatus() {
				return fmt.Errorf("%s: %s: %s", c.GetType(), c.GetReason(), c.GetMessage())
			}
		}
		return nil
	})
}

// isReadiness leaves out the conditions that only warn (deprecations).
func isReadiness(condition string) bool {
	return condition == runtimeapi.RuntimeReady || condition == runtimeapi.NetworkReady
}
