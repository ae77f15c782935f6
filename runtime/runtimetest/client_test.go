package runtimetest_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// client is the plainest CRI client that can be a subject of the suite: it
// sends what the suite sets and knows no fall-back, no retry, no time-out.
type client struct {
	runtime criv1.RuntimeServiceClient
	images  criv1.ImageServiceClient
}

func dial(t *testing.T, endpoint string) client {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return client{criv1.NewRuntimeServiceClient(conn), criv1.NewImageServiceClient(conn)}
}

func (c client) reopenLog(ctx context.Context, id string) error {
	_, err := c.runtime.ReopenContainerLog(ctx, &criv1.ReopenContainerLogRequest{ContainerId: id})
	return err
}

func sandboxConfig(c runtime.SandboxConfig) *criv1.PodSandboxConfig {
	return &criv1.PodSandboxConfig{
		Metadata:     &criv1.PodSandboxMetadata{Name: c.Name, Namespace: c.Namespace, Uid: c.UID, Attempt: c.Attempt},
		Hostname:     c.Hostname,
		LogDirectory: c.LogDirectory,
		Labels:       c.Labels,
		Annotations:  c.Annotations,
		Linux: &criv1.LinuxPodSandboxConfig{
			CgroupParent: c.CgroupParent,
			SecurityContext: &criv1.LinuxSandboxSecurityContext{
				NamespaceOptions: &criv1.NamespaceOption{Pid: criv1.NamespaceMode_CONTAINER},
			},
		},
	}
}

func containerConfig(c runtime.ContainerConfig) *criv1.ContainerConfig {
	return &criv1.ContainerConfig{
		Metadata:    &criv1.ContainerMetadata{Name: c.Name, Attempt: c.Attempt},
		Image:       &criv1.ImageSpec{Image: c.Image.Ref, UserSpecifiedImage: c.Image.Requested},
		Command:     c.Command,
		Args:        c.Args,
		Labels:      c.Labels,
		Annotations: c.Annotations,
		LogPath:     c.LogPath,
		Linux: &criv1.LinuxContainerConfig{SecurityContext: &criv1.LinuxContainerSecurityContext{
			NamespaceOptions: &criv1.NamespaceOption{Pid: criv1.NamespaceMode_CONTAINER},
		}},
	}
}

func (c client) RunSandbox(ctx context.Context, cfg runtime.SandboxConfig) (string, error) {
	resp, err := c.runtime.RunPodSandbox(ctx, &criv1.RunPodSandboxRequest{Config: sandboxConfig(cfg)})
	return resp.GetPodSandboxId(), err
}

func (c client) StopSandbox(ctx context.Context, id string) error {
	_, err := c.runtime.StopPodSandbox(ctx, &criv1.StopPodSandboxRequest{PodSandboxId: id})
	return err
}

func (c client) RemoveSandbox(ctx context.Context, id string) error {
	_, err := c.runtime.RemovePodSandbox(ctx, &criv1.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}

func (c client) CreateContainer(ctx context.Context, sandboxID string, cfg runtime.ContainerConfig, sandbox runtime.SandboxConfig) (string, error) {
	resp, err := c.runtime.CreateContainer(ctx, &criv1.CreateContainerRequest{
		PodSandboxId: sandboxID, Config: containerConfig(cfg), SandboxConfig: sandboxConfig(sandbox),
	})
	return resp.GetContainerId(), err
}

func (c client) StartContainer(ctx context.Context, id string) error {
	_, err := c.runtime.StartContainer(ctx, &criv1.StartContainerRequest{ContainerId: id})
	return err
}

func (c client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	_, err := c.runtime.StopContainer(ctx, &criv1.StopContainerRequest{ContainerId: id, Timeout: int64(grace / time.Second)})
	return err
}

func (c client) RemoveContainer(ctx context.Context, id string) error {
	_, err := c.runtime.RemoveContainer(ctx, &criv1.RemoveContainerRequest{ContainerId: id})
	return err
}

func (c client) LookPod(ctx context.Context, uid string) (runtime.Pod, error) {
	pods, err := c.read(ctx, map[string]string{runtime.LabelPodUID: uid})
	if err != nil || len(pods) == 0 {
		return runtime.Pod{UID: uid}, err
	}
	return pods[0], nil
}

func (c client) ListPods(ctx context.Context) ([]runtime.Pod, error) { return c.read(ctx, nil) }

func (c client) read(ctx context.Context, labels map[string]string) ([]runtime.Pod, error) {
	sandboxes, err := c.runtime.ListPodSandbox(ctx, &criv1.ListPodSandboxRequest{Filter: &criv1.PodSandboxFilter{LabelSelector: labels}})
	if err != nil {
		return nil, err
	}
	containers, err := c.runtime.ListContainers(ctx, &criv1.ListContainersRequest{Filter: &criv1.ContainerFilter{LabelSelector: labels}})
	if err != nil {
		return nil, err
	}
	pods, owner := map[string]*runtime.Pod{}, map[string]*runtime.Pod{}
	for _, s := range sandboxes.GetItems() {
		p := pods[s.GetMetadata().GetUid()]
		if p == nil {
			p = &runtime.Pod{UID: s.GetMetadata().GetUid(), Namespace: s.GetMetadata().GetNamespace(), Name: s.GetMetadata().GetName()}
			pods[p.UID] = p
		}
		owner[s.GetId()] = p
		sandbox, err := c.sandbox(ctx, s.GetId())
		if err != nil {
			return nil, err
		}
		p.Sandboxes = append(p.Sandboxes, sandbox)
	}
	for _, listed := range containers.GetContainers() {
		p := owner[listed.GetPodSandboxId()]
		if p == nil {
			continue
		}
		ctr, err := c.container(ctx, listed)
		if err != nil {
			return nil, err
		}
		p.Containers = append(p.Containers, ctr)
	}
	return sorted(pods), nil
}

func sorted(pods map[string]*runtime.Pod) []runtime.Pod {
	var all []runtime.Pod
	for _, p := range pods {
		slices.SortFunc(p.Sandboxes, func(a, b runtime.Sandbox) int { return cmp.Compare(b.Attempt, a.Attempt) })
		slices.SortFunc(p.Containers, func(a, b runtime.Container) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(b.Attempt, a.Attempt))
		})
		all = append(all, *p)
	}
	return all
}

func (c client) sandbox(ctx context.Context, id string) (runtime.Sandbox, error) {
	resp, err := c.runtime.PodSandboxStatus(ctx, &criv1.PodSandboxStatusRequest{PodSandboxId: id})
	if err != nil {
		return runtime.Sandbox{}, err
	}
	s := resp.GetStatus()
	out := runtime.Sandbox{
		ID:          id,
		Attempt:     s.GetMetadata().GetAttempt(),
		Ready:       s.GetState() == criv1.PodSandboxState_SANDBOX_READY,
		CreatedAt:   time.Unix(0, s.GetCreatedAt()),
		HostNetwork: s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == criv1.NamespaceMode_NODE,
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
	}
	if ip := s.GetNetwork().GetIp(); ip != "" {
		out.IPs = []string{ip}
	}
	return out, nil
}

var containerStates = map[criv1.ContainerState]runtime.ContainerState{
	criv1.ContainerState_CONTAINER_CREATED: runtime.ContainerCreated,
	criv1.ContainerState_CONTAINER_RUNNING: runtime.ContainerRunning,
	criv1.ContainerState_CONTAINER_EXITED:  runtime.ContainerExited,
	criv1.ContainerState_CONTAINER_UNKNOWN: runtime.ContainerUnknown,
}

func (c client) container(ctx context.Context, listed *criv1.Container) (runtime.Container, error) {
	resp, err := c.runtime.ContainerStatus(ctx, &criv1.ContainerStatusRequest{ContainerId: listed.GetId()})
	if err != nil {
		return runtime.Container{}, err
	}
	s := resp.GetStatus()
	return runtime.Container{
		ID:          s.GetId(),
		SandboxID:   listed.GetPodSandboxId(),
		Name:        s.GetMetadata().GetName(),
		Attempt:     s.GetMetadata().GetAttempt(),
		State:       containerStates[s.GetState()],
		CreatedAt:   moment(s.GetCreatedAt()),
		StartedAt:   moment(s.GetStartedAt()),
		FinishedAt:  moment(s.GetFinishedAt()),
		ExitCode:    s.GetExitCode(),
		Reason:      s.GetReason(),
		Message:     s.GetMessage(),
		Image:       s.GetImage().GetImage(),
		ImageID:     s.GetImageRef(),
		LogPath:     s.GetLogPath(),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
	}, nil
}

func moment(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

func (c client) PullImage(ctx context.Context, pull runtime.ImagePull) (string, error) {
	resp, err := c.images.PullImage(ctx, &criv1.PullImageRequest{
		Image: &criv1.ImageSpec{Image: pull.Spec.Image},
		Auth:  &criv1.AuthConfig{Username: pull.Auth.Username, Password: pull.Auth.Password},
	})
	return resp.GetImageRef(), err
}

func (c client) ImageStatus(ctx context.Context, image runtime.ImageSpec) (runtime.ImageInfo, bool, error) {
	resp, err := c.images.ImageStatus(ctx, &criv1.ImageStatusRequest{Image: &criv1.ImageSpec{Image: image.Image}})
	i := resp.GetImage()
	return runtime.ImageInfo{ID: i.GetId(), RepoTags: i.GetRepoTags(), Pinned: i.GetPinned()}, i != nil, err
}

func (c client) ListImages(ctx context.Context) ([]runtime.ImageInfo, error) {
	resp, err := c.images.ListImages(ctx, &criv1.ListImagesRequest{})
	var all []runtime.ImageInfo
	for _, i := range resp.GetImages() {
		all = append(all, runtime.ImageInfo{ID: i.GetId(), RepoTags: i.GetRepoTags(), Pinned: i.GetPinned()})
	}
	return all, err
}

// hints turns the event stream into hints; the World's events carry the pod.
func (c client) hints(t *testing.T) <-chan runtime.Hint {
	t.Helper()
	stream, err := c.runtime.GetContainerEvents(t.Context(), &criv1.GetEventsRequest{})
	must(t, err)
	_, err = stream.Header() // from here on nothing is missed
	must(t, err)
	hints := make(chan runtime.Hint, 1000)
	go func() {
		for {
			e, err := stream.Recv()
			if err != nil {
				return // the stream ends with the test
			}
			hints <- runtime.Hint{UID: uidOf(e)}
		}
	}()
	return hints
}

func uidOf(e *criv1.ContainerEventResponse) string {
	if uid := e.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		return uid
	}
	for _, c := range e.GetContainersStatuses() {
		return c.GetLabels()[runtime.LabelPodUID]
	}
	return ""
}
