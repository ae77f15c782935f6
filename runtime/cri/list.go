package cri

import (
	"context"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// ListPods reads what the runtime holds of all pods in two calls. It tells
// who is there and in what state; addresses, exit codes, times and messages
// come from LookPod alone. Sandboxes without a pod UID label were made by no
// kubelet and are left out. Pods are sorted by UID.
func (c *Client) ListPods(ctx context.Context) ([]runtime.Pod, error) {
	found, err := c.list(ctx, "")
	if err != nil {
		return nil, err
	}
	byUID := map[string]*runtime.Pod{}
	owner := map[string]*runtime.Pod{} // by sandbox ID
	for _, s := range found.sandboxes {
		p := podOf(byUID, s)
		if p == nil {
			continue
		}
		owner[s.Id] = p
		p.Sandboxes = append(p.Sandboxes, listedSandbox(s))
	}
	for _, ctr := range found.containers {
		if p := owner[ctr.PodSandboxId]; p != nil {
			p.Containers = append(p.Containers, listedContainer(ctr))
		}
	}
	var pods []runtime.Pod
	for _, uid := range slices.Sorted(maps.Keys(byUID)) {
		sortPod(byUID[uid])
		pods = append(pods, *byUID[uid])
	}
	return pods, nil
}

// podOf gives the pod of a sandbox, and makes it when it is the first.
func podOf(byUID map[string]*runtime.Pod, s *runtimeapi.PodSandbox) *runtime.Pod {
	uid := s.Labels[runtime.LabelPodUID]
	if uid == "" {
		return nil
	}
	p := byUID[uid]
	if p == nil {
		p = &runtime.Pod{UID: uid, Namespace: s.GetMetadata().GetNamespace(), Name: s.GetMetadata().GetName()}
		byUID[uid] = p
	}
	return p
}

// The calls, as errors and the observer name them.
const (
	opContainers = "ListContainers"
	opSandboxes  = "ListPodSandbox"
	opImages     = "ListImages"
)

// listed is the answer of both list calls.
type listed struct {
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
}

// list reads the containers first: a container whose sandbox is made between
// the two calls is then not in the answer, rather than one without a sandbox.
// An empty uid means all pods.
func (c *Client) list(ctx context.Context, uid string) (listed, error) {
	var labels map[string]string
	if uid != "" {
		labels = map[string]string{runtime.LabelPodUID: uid}
	}
	containers, err := c.listContainers(ctx, labels)
	if err != nil {
		return listed{}, err
	}
	sandboxes, err := c.listSandboxes(ctx, labels)
	if err != nil {
		return listed{}, err
	}
	containers = c.withoutStrays(containers, sandboxes, uid == "")
	return listed{sandboxes: sandboxes, containers: containers}, nil
}

func (c *Client) listContainers(ctx context.Context, labels map[string]string) ([]*runtimeapi.Container, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var filter *runtimeapi.ContainerFilter
	if labels != nil {
		filter = &runtimeapi.ContainerFilter{LabelSelector: labels}
	}
	found, ok, err := listStream[runtimeapi.StreamContainersResponse, *runtimeapi.Container]{
		conn: c.conn, name: opContainers, items: (*runtimeapi.StreamContainersResponse).GetContainers,
		open: func(ctx context.Context) (grpc.ServerStreamingClient[runtimeapi.StreamContainersResponse], error) {
			return c.runtime.StreamContainers(ctx, &runtimeapi.StreamContainersRequest{Filter: filter})
		},
	}.read(ctx)
	if !ok {
		var resp *runtimeapi.ListContainersResponse
		resp, err = c.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
		found = resp.GetContainers()
	}
	return found, wrap(opContainers, labels[runtime.LabelPodUID], err)
}

func (c *Client) listSandboxes(ctx context.Context, labels map[string]string) ([]*runtimeapi.PodSandbox, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var filter *runtimeapi.PodSandboxFilter
	if labels != nil {
		filter = &runtimeapi.PodSandboxFilter{LabelSelector: labels}
	}
	found, ok, err := listStream[runtimeapi.StreamPodSandboxesResponse, *runtimeapi.PodSandbox]{
		conn: c.conn, name: opSandboxes, items: (*runtimeapi.StreamPodSandboxesResponse).GetPodSandboxes,
		open: func(ctx context.Context) (grpc.ServerStreamingClient[runtimeapi.StreamPodSandboxesResponse], error) {
			return c.runtime.StreamPodSandboxes(ctx, &runtimeapi.StreamPodSandboxesRequest{Filter: filter})
		},
	}.read(ctx)
	if !ok {
		var resp *runtimeapi.ListPodSandboxResponse
		resp, err = c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: filter})
		found = resp.GetItems()
	}
	return found, wrap(opSandboxes, labels[runtime.LabelPodUID], err)
}

// strays are the containers without a sandbox that were logged already.
type strays struct {
	mu     sync.Mutex
	logged map[string]bool
}

// withoutStrays leaves out the containers whose sandbox is not listed
// (k/k#107116) and logs each of them once. A full list also tells which of
// those logged before have gone.
func (c *Client) withoutStrays(containers []*runtimeapi.Container, sandboxes []*runtimeapi.PodSandbox, full bool) []*runtimeapi.Container {
	known := make(map[string]bool, len(sandboxes))
	for _, s := range sandboxes {
		known[s.Id] = true
	}
	var kept, stray []*runtimeapi.Container
	for _, ctr := range containers {
		if known[ctr.PodSandboxId] {
			kept = append(kept, ctr)
		} else {
			stray = append(stray, ctr)
		}
	}
	for _, ctr := range c.strays.news(stray, full) {
		c.log.Info("No PodSandBox found for the container",
			"podSandboxId", ctr.PodSandboxId, "containerName", ctr.GetMetadata().GetName(), "containerId", ctr.Id)
	}
	return kept
}

// news gives those that were not logged yet. After a full list only those in
// it are remembered, which bounds the memory.
func (s *strays) news(stray []*runtimeapi.Container, full bool) []*runtimeapi.Container {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.logged
	if full || s.logged == nil {
		s.logged = make(map[string]bool, len(stray))
	}
	var fresh []*runtimeapi.Container
	for _, ctr := range stray {
		if !before[ctr.Id] {
			fresh = append(fresh, ctr)
		}
		s.logged[ctr.Id] = true
	}
	return fresh
}
