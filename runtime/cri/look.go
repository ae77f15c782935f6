package cri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// LookPod reads all that the runtime holds of one pod now, by calls for that
// pod alone: two lists by label, the status of the newest sandbox and the
// status of each container. A pod that is not there is empty, not an error.
func (c *Client) LookPod(ctx context.Context, uid string) (runtime.Pod, error) {
	found, err := c.list(ctx, uid)
	if err != nil {
		return runtime.Pod{}, err
	}
	pod := runtime.Pod{UID: uid}
	for _, s := range found.sandboxes {
		pod.Namespace, pod.Name = s.GetMetadata().GetNamespace(), s.GetMetadata().GetName()
		pod.Sandboxes = append(pod.Sandboxes, listedSandbox(s))
	}
	for _, listed := range found.containers {
		ctr, ok, err := c.lookContainer(ctx, listed)
		if err != nil {
			return runtime.Pod{}, err
		}
		if ok {
			pod.Containers = append(pod.Containers, ctr)
		}
	}
	sortPod(&pod)
	return pod, c.lookNewestSandbox(ctx, &pod)
}

// lookNewestSandbox fills in what only the status of a sandbox tells. One
// that is removed meanwhile is left out.
func (c *Client) lookNewestSandbox(ctx context.Context, pod *runtime.Pod) error {
	if len(pod.Sandboxes) == 0 {
		return nil
	}
	newest := &pod.Sandboxes[0]
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: newest.ID})
	if status.Code(err) == codes.NotFound {
		pod.Sandboxes = pod.Sandboxes[1:]
		return nil
	}
	if err != nil {
		return wrap("PodSandboxStatus", newest.ID, err)
	}
	*newest = seenSandbox(resp.GetStatus())
	return nil
}

// lookContainer reads one container; false when it was removed meanwhile.
func (c *Client) lookContainer(ctx context.Context, listed *runtimeapi.Container) (runtime.Container, bool, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: listed.Id})
	if status.Code(err) == codes.NotFound {
		return runtime.Container{}, false, nil
	}
	if err != nil {
		return runtime.Container{}, false, wrap("ContainerStatus", listed.Id, err)
	}
	ctr := seenContainer(resp.GetStatus(), listed.PodSandboxId)
	if ctr.State == runtime.ContainerExited {
		ctr.Message = c.terminationMessage(ctr, resp.GetStatus().GetMounts())
	}
	return ctr, true, nil
}
