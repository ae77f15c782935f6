package cri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// The calls that change pods, as errors name them.
const (
	opRunSandbox      = "RunPodSandbox"
	opStopSandbox     = "StopPodSandbox"
	opRemoveSandbox   = "RemovePodSandbox"
	opCreateContainer = "CreateContainer"
	opStartContainer  = "StartContainer"
	opStopContainer   = "StopContainer"
	opRemoveContainer = "RemoveContainer"
)

// RunSandbox creates and starts a sandbox and gives its ID. It may take twice
// the request timeout, for runtimes that pull their sandbox image first.
func (c *Client) RunSandbox(ctx context.Context, cfg runtime.SandboxConfig) (string, error) {
	name := cfg.Namespace + "/" + cfg.Name
	req, err := sandboxConfig(cfg)
	if err != nil {
		return "", wrap(opRunSandbox, name, err)
	}
	asked := wanted{
		handler: cfg.RuntimeHandler, groupsPolicy: cfg.Security.SupplementalGroupsPolicy, user: cfg.Security.Namespaces.User,
	}
	if err := c.checkFeatures(ctx, asked); err != nil {
		return "", wrap(opRunSandbox, name, err)
	}
	ctx, cancel := c.withinPlus(ctx, c.cfg.RequestTimeout)
	defer cancel()
	resp, err := c.runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: req, RuntimeHandler: cfg.RuntimeHandler})
	if err != nil {
		return "", wrap(opRunSandbox, name, err)
	}
	return checkID(opRunSandbox, name, resp.PodSandboxId)
}

// StopSandbox kills what still runs in the sandbox and takes its network
// away. A sandbox that is not there is stopped.
func (c *Client) StopSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err := c.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return wrap(opStopSandbox, id, unlessNotFound(err))
}

// RemoveSandbox removes a sandbox with the containers that are left in it.
func (c *Client) RemoveSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err := c.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return wrap(opRemoveSandbox, id, unlessNotFound(err))
}

// CreateContainer creates a container in a sandbox that runs and gives its
// ID. The sandbox's configuration is the one it was made with.
func (c *Client) CreateContainer(ctx context.Context, sandboxID string, cfg runtime.ContainerConfig, sandbox runtime.SandboxConfig) (string, error) {
	req, err := createRequest(sandboxID, cfg, sandbox)
	if err != nil {
		return "", wrap(opCreateContainer, cfg.Name, err)
	}
	asked := wanted{
		handler: sandbox.RuntimeHandler, groupsPolicy: cfg.Security.SupplementalGroupsPolicy,
		user: cfg.Security.Namespaces.User, mounts: cfg.Mounts,
	}
	if err := c.checkFeatures(ctx, asked); err != nil {
		return "", wrap(opCreateContainer, cfg.Name, err)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.CreateContainer(ctx, req)
	if err != nil {
		return "", wrap(opCreateContainer, cfg.Name, err)
	}
	return checkID(opCreateContainer, cfg.Name, resp.ContainerId)
}

func createRequest(sandboxID string, cfg runtime.ContainerConfig, sandbox runtime.SandboxConfig) (*runtimeapi.CreateContainerRequest, error) {
	s, err := sandboxConfig(sandbox)
	if err != nil {
		return nil, err
	}
	ctr, err := containerConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.CreateContainerRequest{PodSandboxId: sandboxID, Config: ctr, SandboxConfig: s}, nil
}

// StartContainer starts a container that was created.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err := c.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
	return wrap(opStartContainer, id, err)
}

// StopContainer signals the container, kills it when grace is over and returns
// when it has stopped. The CRI counts in seconds: a part of one is a whole one.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	ctx, cancel := c.withinPlus(ctx, grace)
	defer cancel()
	_, err := c.runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: seconds(grace)})
	return wrap(opStopContainer, id, unlessNotFound(err))
}

// RemoveContainer removes a container; the runtime kills it if it runs.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err := c.runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return wrap(opRemoveContainer, id, unlessNotFound(err))
}

// ReopenContainerLog makes the runtime open the log file anew, after the old
// one was renamed.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err := c.runtime.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: id})
	return wrap("ReopenContainerLog", id, err)
}

// ExecResult is how a command in a container ended.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// ExecSync runs a command in a container. A timeout of 0 leaves only the
// context as a bound; a command that took too long is an error with Timeout.
func (c *Client) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (ExecResult, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = c.withinPlus(ctx, timeout)
		defer cancel()
	}
	resp, err := c.runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: cmd, Timeout: seconds(timeout)})
	if err != nil {
		return ExecResult{}, wrap("ExecSync", id, err)
	}
	return ExecResult{Stdout: resp.Stdout, Stderr: resp.Stderr, ExitCode: resp.ExitCode}, nil
}

// seconds rounds up, so that nothing gets less time than it was promised.
func seconds(d time.Duration) int64 {
	return int64((max(0, d) + time.Second - 1) / time.Second)
}

// checkID refuses an answer without the ID of what was made.
func checkID(op, object, id string) (string, error) {
	if id == "" {
		return "", wrap(op, object, errNoID)
	}
	return id, nil
}
