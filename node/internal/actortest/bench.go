// Package actortest puts the pod machine on a runtimetest.World: small parts
// in memory around a strict runtime, for the tests of podactor and node.
//
//	b := actortest.New(t, runtimetest.Config{})
//	... podactor.Parts{Engine: b, Watcher: b, Puller: b, Mounter: b.Mounts, Specs: actortest.Specs{}} ...
//
// All of it runs inside a synctest bubble.
package actortest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// Bench is an Engine, a Watcher and a Puller over a World, and keeps what the
// sinks were told.
type Bench struct {
	*runtimetest.World
	Mounts *Mounts

	mu       sync.Mutex
	statuses map[string][]podactor.StatusUpdate
	events   []podactor.PodEvent
}

// New makes a bench with an empty world.
func New(t runtimetest.Reporter, cfg runtimetest.Config) *Bench {
	return &Bench{
		World:    runtimetest.NewWorld(t, cfg),
		Mounts:   &Mounts{mounted: map[string]map[string]bool{}, dirs: map[string]bool{}},
		statuses: map[string][]podactor.StatusUpdate{},
	}
}

// RunSandbox, StartContainer, StopContainer, StopSandbox and Remove are the Engine.
func (b *Bench) RunSandbox(ctx context.Context, req podactor.RunSandboxRequest) (podactor.RunSandboxResult, error) {
	id, err := b.World.RunSandbox(ctx, req.Config)
	return podactor.RunSandboxResult{SandboxID: id}, err
}

// StartContainer creates and starts.
func (b *Bench) StartContainer(ctx context.Context, req podactor.StartContainerRequest) (podactor.StartContainerResult, error) {
	id, err := b.CreateContainer(ctx, req.SandboxID, req.Config, req.Sandbox)
	if err == nil {
		err = b.World.StartContainer(ctx, id)
	}
	return podactor.StartContainerResult{ContainerID: id}, err
}

// StopContainer stops.
func (b *Bench) StopContainer(ctx context.Context, req podactor.StopContainerRequest) error {
	return b.World.StopContainer(ctx, req.ContainerID, req.Grace)
}

// StopSandbox stops.
func (b *Bench) StopSandbox(ctx context.Context, req podactor.StopSandboxRequest) error {
	return b.World.StopSandbox(ctx, req.SandboxID)
}

// Remove removes.
func (b *Bench) Remove(ctx context.Context, req podactor.RemoveRequest) error {
	if req.ContainerID != "" {
		return b.RemoveContainer(ctx, req.ContainerID)
	}
	return b.RemoveSandbox(ctx, req.SandboxID)
}

// Look, List and Status are the Watcher; Hints is the World's.
func (b *Bench) Look(ctx context.Context, req podactor.LookRequest) (podactor.LookResult, error) {
	pod, err := b.LookPod(ctx, req.UID)
	return podactor.LookResult{Pod: pod}, err
}

// List lists.
func (b *Bench) List(ctx context.Context) ([]runtime.Pod, error) { return b.ListPods(ctx) }

// Status is the World's; down is not ready.
func (b *Bench) Status() runtime.Status {
	status, err := b.World.Status(context.Background())
	if err != nil {
		return runtime.Status{}
	}
	return status
}

// Pull makes an image present as its policy says.
func (b *Bench) Pull(ctx context.Context, req podactor.PullRequest) (podactor.PullResult, error) {
	spec := runtime.ImageSpec{Image: req.Image}
	if info, there, err := b.ImageStatus(ctx, spec); err != nil {
		return podactor.PullResult{}, err
	} else if there && req.Policy != corev1.PullAlways {
		return podactor.PullResult{Ref: info.ID, User: info.User}, nil
	}
	id, err := b.PullImage(ctx, runtime.ImagePull{Spec: spec, Sandbox: req.Sandbox})
	return podactor.PullResult{Ref: id}, err
}

// PodStatus keeps a status.
func (b *Bench) PodStatus(update podactor.StatusUpdate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.statuses[update.UID] = append(b.statuses[update.UID], update)
}

// PodEvent keeps an event.
func (b *Bench) PodEvent(event podactor.PodEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, event)
}

// Statuses are all statuses of a pod so far.
func (b *Bench) Statuses(uid string) []podactor.StatusUpdate {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]podactor.StatusUpdate(nil), b.statuses[uid]...)
}

// Last is the newest status of a pod; zero before the first.
func (b *Bench) Last(uid string) podactor.StatusUpdate {
	all := b.Statuses(uid)
	if len(all) == 0 {
		return podactor.StatusUpdate{}
	}
	return all[len(all)-1]
}

// Events are the reasons of a pod's events so far.
func (b *Bench) Events(uid string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var reasons []string
	for _, e := range b.events {
		if e.UID == uid {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Seen is the World's view of a pod.
func (b *Bench) Seen(t testing.TB, uid string) runtime.Pod {
	t.Helper()
	pod, err := b.LookPod(t.Context(), uid)
	if err != nil {
		t.Fatalf("look at pod %s: %v", uid, err)
	}
	return pod
}

// Running counts the running containers of a pod.
func (b *Bench) Running(t testing.TB, uid string) int {
	t.Helper()
	count := 0
	for _, c := range b.Seen(t, uid).Containers {
		if c.State == runtime.ContainerRunning {
			count++
		}
	}
	return count
}

// Specs makes configurations with the stock labels and annotations.
type Specs struct{}

// Sandbox makes a sandbox's configuration.
func (Specs) Sandbox(req podactor.SandboxSpecRequest) (runtime.SandboxConfig, error) {
	config := runtimetest.SandboxFor(req.Pod.Namespace, req.Pod.Name, string(req.Pod.UID), req.Attempt)
	if source := req.Pod.Annotations[runtime.AnnotationConfigSource]; source != "" {
		config.Annotations[runtime.AnnotationConfigSource] = source
	}
	return config, nil
}

// Container makes a container's configuration.
func (s Specs) Container(req podactor.ContainerSpecRequest) (runtime.ContainerConfig, error) {
	sandbox, err := s.Sandbox(podactor.SandboxSpecRequest{Pod: req.Pod})
	if err != nil {
		return runtime.ContainerConfig{}, err
	}
	config := runtimetest.ContainerFor(sandbox, req.Container, req.ImageRef, req.Attempt)
	config.Mounts = req.Mounts
	config.Annotations[runtime.AnnotationRestartCount] = strconv.Itoa(int(req.Restarts))
	if grace := req.Pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		config.Annotations[runtime.AnnotationPodTerminationGracePeriod] = strconv.FormatInt(*grace, 10)
	}
	containers := slices.Clone(req.Pod.Spec.Containers)
	for _, c := range req.Pod.Spec.EphemeralContainers {
		containers = append(containers, corev1.Container(c.EphemeralContainerCommon))
	}
	for i := range containers {
		if c := &containers[i]; c.Name == req.Container {
			config.Image.Requested = c.Image
			config.Annotations[runtime.AnnotationContainerHash] = lifecycle.ContainerHash(c)
		}
	}
	return config, nil
}

// Check lets everything pass.
func (Specs) Check(*corev1.Pod) error { return nil }

// Mounts is a Mounter in memory that also knows the pods' directories.
type Mounts struct {
	mu      sync.Mutex
	mounted map[string]map[string]bool
	dirs    map[string]bool
}

// Mount mounts.
func (m *Mounts) Mount(_ context.Context, req podactor.MountRequest) (podactor.MountResult, error) {
	m.Put(string(req.Pod.UID), req.Volume)
	return podactor.MountResult{HostPath: "/volumes/" + req.Volume}, nil
}

// Put makes a volume mounted and the pod's directory exist.
func (m *Mounts) Put(uid, volume string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mounted[uid] == nil {
		m.mounted[uid] = map[string]bool{}
	}
	m.mounted[uid][volume] = true
	m.dirs[uid] = true
}

// Unmount unmounts.
func (m *Mounts) Unmount(_ context.Context, req podactor.UnmountRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mounted[req.UID], req.Volume)
	return nil
}

// Mounted lists what is mounted.
func (m *Mounts) Mounted(_ context.Context, uid string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.mounted[uid] {
		names = append(names, name)
	}
	return names, nil
}

// ContainerMounts has none.
func (m *Mounts) ContainerMounts(context.Context, podactor.ContainerMountsRequest) (podactor.ContainerMountsResult, error) {
	return podactor.ContainerMountsResult{}, nil
}

// RemovePodDir removes the directory, never through a mount.
func (m *Mounts) RemovePodDir(_ context.Context, uid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mounted[uid]) > 0 {
		panic("directory of pod " + uid + " removed through a mount")
	}
	delete(m.dirs, uid)
	delete(m.mounted, uid)
	return nil
}

// ListPodDirs lists the UIDs that have a directory.
func (m *Mounts) ListPodDirs(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var uids []string
	for uid := range m.dirs {
		uids = append(uids, uid)
	}
	return uids, nil
}

// Pod is a pod with one container "app" that runs until it is stopped.
func Pod(uid, name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "app", Image: "registry.test/app:1", ImagePullPolicy: corev1.PullIfNotPresent}},
		},
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}
