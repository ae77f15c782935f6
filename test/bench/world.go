package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// world is a runtimetest.World as an engine, a watcher, a puller, a mounter
// without volumes, and specs.
type world struct {
	*runtimetest.World
	hints chan runtime.Hint
}

func newWorld(pods int) (*world, *complaints) {
	c := &complaints{}
	w := runtimetest.NewWorld(c, runtimetest.Config{EventBuffer: 8*pods + 1})
	return &world{World: w, hints: make(chan runtime.Hint)}, c
}

// complaints are what the World has to say against the agent.
type complaints struct {
	mu  sync.Mutex
	all []error
}

// Helper is for runtimetest.Reporter.
func (c *complaints) Helper() {}

// Errorf keeps a complaint.
func (c *complaints) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Errorf(format, args...))
}

func (c *complaints) first() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return nil
	}
	return fmt.Errorf("%d complaints of the runtime; the first: %w", len(c.all), c.all[0])
}

// calls is how often the runtime was asked for anything about pods.
func (w *world) calls() int {
	sum := 0
	for _, m := range []runtimetest.Method{
		runtimetest.MethodLook, runtimetest.MethodList, runtimetest.MethodImageStatus, runtimetest.MethodPullImage,
		runtimetest.MethodRunSandbox, runtimetest.MethodStopSandbox, runtimetest.MethodRemoveSandbox,
		runtimetest.MethodCreateContainer, runtimetest.MethodStartContainer,
		runtimetest.MethodStopContainer, runtimetest.MethodRemoveContainer,
	} {
		sum += w.Calls(m)
	}
	return sum
}

// forward hands on the World's hints until ctx ends.
func (w *world) forward(ctx context.Context) {
	from := w.World.Hints()
	for {
		select {
		case hint := <-from:
			w.hint(ctx, hint)
		case <-ctx.Done():
			return
		}
	}
}

func (w *world) hint(ctx context.Context, hint runtime.Hint) {
	select {
	case w.hints <- hint:
	case <-ctx.Done():
	}
}

// Hints are the World's and the bench's own.
func (w *world) Hints() <-chan runtime.Hint { return w.hints }

// Look, List and Status are the rest of the watcher.
func (w *world) Look(ctx context.Context, req node.LookRequest) (node.LookResult, error) {
	pod, err := w.LookPod(ctx, req.UID)
	return node.LookResult{Pod: pod}, err
}

// List lists.
func (w *world) List(ctx context.Context) ([]runtime.Pod, error) { return w.ListPods(ctx) }

// Status is always good.
func (w *world) Status() runtime.Status {
	return runtime.Status{Name: "world", RuntimeReady: true, NetworkReady: true}
}

// RunSandbox and the methods up to Remove are the engine.
func (w *world) RunSandbox(ctx context.Context, req node.RunSandboxRequest) (node.RunSandboxResult, error) {
	id, err := w.World.RunSandbox(ctx, req.Config)
	return node.RunSandboxResult{SandboxID: id}, err
}

// StartContainer creates and starts.
func (w *world) StartContainer(ctx context.Context, req node.StartContainerRequest) (node.StartContainerResult, error) {
	id, err := w.CreateContainer(ctx, req.SandboxID, req.Config, req.Sandbox)
	if err == nil {
		err = w.World.StartContainer(ctx, id)
	}
	return node.StartContainerResult{ContainerID: id}, err
}

// StopContainer stops.
func (w *world) StopContainer(ctx context.Context, req node.StopContainerRequest) error {
	return w.World.StopContainer(ctx, req.ContainerID, req.Grace)
}

// StopSandbox stops.
func (w *world) StopSandbox(ctx context.Context, req node.StopSandboxRequest) error {
	return w.World.StopSandbox(ctx, req.SandboxID)
}

// Remove removes.
func (w *world) Remove(ctx context.Context, req node.RemoveRequest) error {
	if req.ContainerID != "" {
		return w.RemoveContainer(ctx, req.ContainerID)
	}
	return w.RemoveSandbox(ctx, req.SandboxID)
}

// Pull pulls what is not there.
func (w *world) Pull(ctx context.Context, req node.PullRequest) (node.PullResult, error) {
	spec := runtime.ImageSpec{Image: req.Image}
	if info, there, err := w.ImageStatus(ctx, spec); err != nil || there {
		return node.PullResult{Ref: info.ID}, err
	}
	id, err := w.PullImage(ctx, runtime.ImagePull{Spec: spec, Sandbox: req.Sandbox})
	return node.PullResult{Ref: id}, err
}

// specs makes configurations with the stock labels.
type specs struct{}

// Check lets everything pass.
func (specs) Check(*corev1.Pod) error { return nil }

// Sandbox makes a sandbox's configuration.
func (specs) Sandbox(req node.SandboxSpecRequest) (runtime.SandboxConfig, error) {
	return runtimetest.SandboxFor(req.Pod.Namespace, req.Pod.Name, string(req.Pod.UID), req.Attempt), nil
}

// Container makes a container's configuration.
func (specs) Container(req node.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	sandbox := runtimetest.SandboxFor(req.Pod.Namespace, req.Pod.Name, string(req.Pod.UID), 0)
	config := runtimetest.ContainerFor(sandbox, req.Container, req.ImageRef, req.Attempt)
	config.Annotations[runtime.AnnotationRestartCount] = strconv.Itoa(int(req.Restarts))
	config.Annotations[runtime.AnnotationContainerHash] = lifecycle.ContainerHash(&req.Pod.Spec.Containers[0])
	config.Image.Requested = req.Pod.Spec.Containers[0].Image
	return config, nil
}

// noVolumes is a mounter for pods that have none.
type noVolumes struct{}

// Mount mounts nothing, and so on.
func (noVolumes) Mount(context.Context, node.MountRequest) (node.MountResult, error) {
	return node.MountResult{}, nil
}

// Unmount unmounts nothing.
func (noVolumes) Unmount(context.Context, node.UnmountRequest) error { return nil }

// Mounted says that nothing is.
func (noVolumes) Mounted(context.Context, string) ([]string, error) { return nil, nil }

// ContainerMounts are none.
func (noVolumes) ContainerMounts(context.Context, node.ContainerMountsRequest) (node.ContainerMountsResult, error) {
	return node.ContainerMountsResult{}, nil
}

// RemovePodDir has nothing to remove.
func (noVolumes) RemovePodDir(context.Context, string) error { return nil }
