package testbed

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CrashSandbox kills the process that holds a sandbox open, behind the
// runtime's back.
func (b *Bed) CrashSandbox(ctx context.Context, id string) error {
	reply, err := b.CRI().PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: true})
	if err != nil {
		return err
	}
	return killPIDOf(reply.GetInfo()["info"])
}

// CrashContainer kills the first process of a container, behind the runtime's back.
func (b *Bed) CrashContainer(ctx context.Context, id string) error {
	reply, err := b.CRI().ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return err
	}
	return killPIDOf(reply.GetInfo()["info"])
}

// killPIDOf reads containerd's verbose information.
func killPIDOf(info string) error {
	var facts struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(info), &facts); err != nil || facts.PID <= 1 {
		return fmt.Errorf("no pid in %q: %w", info, err)
	}
	return unix.Kill(facts.PID, unix.SIGKILL)
}
