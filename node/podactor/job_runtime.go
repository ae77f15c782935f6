package podactor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

func (j *job) pull(ctx context.Context) (effect, error) {
	spec, err := j.spec()
	if err != nil {
		return nil, err
	}
	image := j.action.Image
	if image == "" {
		image = spec.Image
	}
	res, err := j.parts.Puller.Pull(ctx, PullRequest{
		Pod: j.pod, Container: spec.Name, Image: image, Policy: spec.ImagePullPolicy, Sandbox: j.sandboxOfPull(ctx),
		Tell: j.tell,
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

// sandboxOfPull tells the runtime for whom an image is. Where there is no such
// sandbox, for now or for good, the attempt to make one says so, and the pull
// goes on without.
func (j *job) sandboxOfPull(ctx context.Context) runtime.SandboxConfig {
	around, err := j.surroundings(ctx)
	if err != nil {
		return runtime.SandboxConfig{}
	}
	sandbox, err := j.parts.Specs.Sandbox(around.sandboxSpec(j.pod, 0, j.hostIPs))
	if err != nil {
		return runtime.SandboxConfig{}
	}
	return sandbox
}

func (j *job) runSandbox(ctx context.Context) error {
	around, err := j.surroundings(ctx)
	if err != nil {
		return err
	}
	req := around.sandboxSpec(j.pod, j.action.Attempt, j.hostIPs)
	req.Tell = j.tell
	config, err := j.parts.Specs.Sandbox(req)
	if err != nil {
		return err
	}
	leave, err := j.enterGate(ctx)
	if err != nil {
		return err
	}
	defer leave()
	defer j.warm(ctx)()
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
	if err := j.killForgotten(ctx); err != nil {
		return err
	}
	return j.parts.Engine.Remove(ctx, RemoveRequest{SandboxID: j.action.SandboxID})
}

// killForgotten kills what runs in the cgroup of a pod that is over and whose
// sandbox could not be removed before: a runtime whose start of a container was
// cut off may hold a process that it does not show, and until it ends removes
// neither the container nor the sandbox (containerd#11037).
func (j *job) killForgotten(ctx context.Context) error {
	if !j.over || !j.failedBefore || j.parts.Cgroups == nil {
		return nil
	}
	if err := j.parts.Cgroups.Remove(ctx, j.uid); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}

func (j *job) startContainer(ctx context.Context) (effect, error) {
	req, err := j.containerRequest(ctx)
	if err != nil {
		return nil, configError(err)
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

// configError gives what kept a container from being described the stock
// reason, unless it has one.
func configError(err error) error {
	if reasoned.Reason(err, "") != "" {
		return err
	}
	return reasoned.New("CreateContainerConfigError", err).After(reasoned.RetryAfter(err, 0))
}

// containerRequest works out the container's configuration just before it
// starts. What is wrong with it is told in the words of who found it, as users
// know them.
func (j *job) containerRequest(ctx context.Context) (StartContainerRequest, error) {
	req := StartContainerRequest{SandboxID: j.action.SandboxID}
	spec, err := j.spec()
	if err != nil {
		return req, err
	}
	around, err := j.surroundings(ctx)
	if err != nil {
		return req, err
	}
	if req.Config, err = j.containerConfig(ctx, spec, around); err != nil {
		return req, err
	}
	req.Sandbox, err = j.parts.Specs.Sandbox(around.sandboxSpec(j.pod, j.sandboxAttempt, j.hostIPs))
	return req, err
}

func (j *job) containerConfig(ctx context.Context, spec *corev1.Container, around surroundings) (config runtime.ContainerConfig, err error) {
	env, err := j.environment(ctx)
	if err != nil {
		return config, err
	}
	target, err := j.target()
	if err != nil {
		return config, err
	}
	mounts, err := j.parts.Mounter.ContainerMounts(ctx, ContainerMountsRequest{
		Pod: j.pod, Container: spec.Name, PodIPs: j.podIPs, HostIPs: j.hostIPs, Environment: env, RuntimeHandler: around.handler,
	})
	if err != nil {
		return config, err
	}
	return j.parts.Specs.Container(ContainerSpecRequest{
		Pod: j.pod, Container: spec.Name, Attempt: j.action.Attempt, Restarts: j.action.Restarts,
		ImageRef: j.imageRef, ImageUser: j.imageUser, Mounts: mounts.Mounts, Devices: mounts.Devices, PodIPs: j.podIPs, HostIPs: j.hostIPs,
		TerminationLog: j.terminationLog(spec), RuntimeHandler: around.handler, UserNamespace: around.user,
		Environment: env, TargetID: target,
	})
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
