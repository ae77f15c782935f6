package wire

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/observe"
)

// Engine runs pods on a CRI runtime. The client gives errors their reasons.
func Engine(client *cri.Client) node.Engine { return criEngine{client} }

type criEngine struct{ cri *cri.Client }

func (e criEngine) RunSandbox(ctx context.Context, req podactor.RunSandboxRequest) (podactor.RunSandboxResult, error) {
	if err := makeLogDir(req.Config.LogDirectory); err != nil {
		return podactor.RunSandboxResult{}, err
	}
	id, err := e.cri.RunSandbox(ctx, req.Config)
	return podactor.RunSandboxResult{SandboxID: id}, err
}

func (e criEngine) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	if err := makeLogDir(req.Sandbox.LogDirectory, req.Config.Name); err != nil {
		return podactor.StartContainerResult{}, err
	}
	id, err := e.cri.CreateContainer(ctx, req.SandboxID, req.Config, req.Sandbox)
	if err != nil {
		return podactor.StartContainerResult{}, err
	}
	if err := e.cri.StartContainer(ctx, id); err != nil {
		return podactor.StartContainerResult{}, err
	}
	return podactor.StartContainerResult{ContainerID: id}, nil
}

// makeLogDir makes a directory for logs: the CRI leaves it open whether the
// runtime does, and the stock kubelet always did. A pod without a log directory
// has no logs.
func makeLogDir(podLogs string, below ...string) error {
	if podLogs == "" {
		return nil
	}
	dir := filepath.Join(append([]string{podLogs}, below...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // log collectors that are not root read it
		return fmt.Errorf("log directory: %w", err)
	}
	return nil
}

func (e criEngine) StopContainer(ctx context.Context, req podactor.StopContainerRequest) error {
	return e.cri.StopContainer(ctx, req.ContainerID, req.Grace)
}

func (e criEngine) StopSandbox(ctx context.Context, req podactor.StopSandboxRequest) error {
	return e.cri.StopSandbox(ctx, req.SandboxID)
}

func (e criEngine) Remove(ctx context.Context, req podactor.RemoveRequest) error {
	if req.ContainerID != "" {
		return e.cri.RemoveContainer(ctx, req.ContainerID)
	}
	return e.cri.RemoveSandbox(ctx, req.SandboxID)
}

// Watcher watches a runtime through an observer, which must run.
func Watcher(o *observe.Observer) node.Watcher { return watcher{o} }

type watcher struct{ *observe.Observer }

func (w watcher) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	pod, err := w.Observer.Look(ctx, req.UID)
	return podactor.LookResult{Pod: pod}, err
}

// Execer runs the commands of lifecycle handlers in containers.
func Execer(client *cri.Client) handlers.Execer { return execer{client} }

type execer struct{ cri *cri.Client }

func (e execer) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (handlers.ExecResult, error) {
	res, err := e.cri.ExecSync(ctx, id, cmd, timeout)
	return handlers.ExecResult{Stdout: res.Stdout, Stderr: res.Stderr, ExitCode: res.ExitCode}, err
}
