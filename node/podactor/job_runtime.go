package podactor

import (
	"context"
	"fmt"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/lifecycle"
)

func (j *job) pull(ctx context.Context) (effect, error) {
	spec, err := j.spec()
	if err != nil {
		return nil, err
	}
	sandbox, err := j.parts.Specs.Sandbox(SandboxSpecRequest{Pod: j.pod})
	if err != nil {
		return nil, fmt.Errorf("sandbox config: %w", err)
	}
	image := j.action.Image
	if image == "" {
		image = spec.Image
	}
	res, err := j.parts.Puller.Pull(ctx, PullRequest{
		Pod: j.pod, Container: spec.Name, Image: image, Policy: spec.ImagePullPolicy, Sandbox: sandbox,
		Tell: func(e lifecycle.Event) { j.event(e.Type, e.Reason, e.Message) },
	})
	if err != nil {
		return nil, err
	}
	return func(r *run) {
		if r.seen.Images == nil {
			r.seen.Images = map[string]lifecycle.Image{}
		}
		r.seen.Images[spec.Name] = lifecycle.Image{Spec: image, Ref: res.Ref}
		r.imageUser[spec.Name] = res.User
	}, nil
}

func (j *job) runSandbox(ctx context.Context) error {
	config, err := j.parts.Specs.Sandbox(SandboxSpecRequest{Pod: j.pod, Attempt: j.action.Attempt})
	if err != nil {
		return fmt.Errorf("sandbox config: %w", err)
	}
	leave, err := j.enterGate(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, err = j.parts.Engine.RunSandbox(ctx, RunSandboxRequest{Config: config})
	return err
}

func (j *job) stopSandbox(ctx context.Context) error {
	return j.parts.Engine.StopSandbox(ctx, StopSandboxRequest{SandboxID: j.action.SandboxID})
}

func (j *job) removeSandbox(ctx context.Context) error {
	if err := j.stopSandbox(ctx); err != nil {
		return err
	}
	return j.parts.Engine.Remove(ctx, RemoveRequest{SandboxID: j.action.SandboxID})
}

func (j *job) startContainer(ctx context.Context) (effect, error) {
	req, err := j.containerRequest(ctx)
	if err != nil {
		return nil, reasoned.New(reasoned.Reason(err, "CreateContainerConfigError"), err)
	}
	leave, err := j.enterGate(ctx)
	if err != nil {
		return nil, err
	}
	res, err := j.parts.Engine.StartContainer(ctx, req)
	leave()
	if err != nil {
		return nil, err
	}
	j.event(lifecycle.EventNormal, "Created", "Container created")
	j.event(lifecycle.EventNormal, "Started", "Container started")
	return j.started(ctx, res.ContainerID), nil
}

// containerRequest works out the container's configuration just before it starts.
func (j *job) containerRequest(ctx context.Context) (StartContainerRequest, error) {
	var req StartContainerRequest
	spec, err := j.spec()
	if err != nil {
		return req, err
	}
	mounts, err := j.parts.Mounter.ContainerMounts(ctx, ContainerMountsRequest{Pod: j.pod, Container: spec.Name, PodIPs: j.podIPs})
	if err != nil {
		return req, fmt.Errorf("container %s: mounts: %w", spec.Name, err)
	}
	req.SandboxID = j.action.SandboxID
	req.Config, err = j.parts.Specs.Container(ContainerSpecRequest{
		Pod: j.pod, Container: spec.Name, Attempt: j.action.Attempt, Restarts: j.action.Restarts,
		ImageRef: j.imageRef, ImageUser: j.imageUser, Mounts: mounts.Mounts, PodIPs: j.podIPs, HostIPs: j.hostIPs,
		TerminationLog: j.terminationLog(spec),
	})
	if err != nil {
		return req, fmt.Errorf("container %s: config: %w", spec.Name, err)
	}
	req.Sandbox, err = j.parts.Specs.Sandbox(SandboxSpecRequest{Pod: j.pod, Attempt: j.sandboxAttempt})
	if err != nil {
		return req, fmt.Errorf("sandbox config: %w", err)
	}
	return req, nil
}

func (j *job) removeContainer(ctx context.Context) error {
	return j.parts.Engine.Remove(ctx, RemoveRequest{ContainerID: j.action.ContainerID, Container: j.container})
}

// enterGate waits in line for the runtime.
func (j *job) enterGate(ctx context.Context) (leave func(), err error) {
	if j.parts.Gate == nil {
		return func() {}, nil
	}
	return j.parts.Gate.Enter(ctx, j.begun, j.cfg.Order)
}
