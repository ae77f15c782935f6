package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/resources/cgroups"
	"nodekit.dev/test/integration/testbed"
)

// Template holds the requests that an agent made for one pod of one container.
type Template struct {
	pod       *corev1.Pod
	root      string // the agent's root directory
	sandbox   *runtimeapi.RunPodSandboxRequest
	container *runtimeapi.CreateContainerRequest
	folders   map[string]bool // by path in the container: what is mounted is a folder
	grace     int64           // seconds, as the agent asked for
}

// TemplateOf finds the requests among the calls that started a pod, which must
// still be there, and looks at what they mount.
func TemplateOf(pod *corev1.Pod, root string, started []Call) (Template, error) {
	t := Template{pod: pod, root: root, folders: map[string]bool{}}
	for _, c := range started {
		var err error
		switch c.method {
		case "RunPodSandbox":
			t.sandbox = &runtimeapi.RunPodSandboxRequest{}
			err = proto.Unmarshal(c.request, t.sandbox)
		case "CreateContainer":
			t.container = &runtimeapi.CreateContainerRequest{}
			err = proto.Unmarshal(c.request, t.container)
		}
		if err != nil {
			return t, fmt.Errorf("recorded %s: %w", c.method, err)
		}
	}
	if t.sandbox == nil || t.container == nil {
		return t, errors.New("the recorded calls do not hold a pod's start")
	}
	for _, mount := range t.container.GetConfig().GetMounts() {
		info, err := os.Stat(mount.HostPath)
		if err != nil {
			return t, fmt.Errorf("recorded mount: %w", err)
		}
		t.folders[mount.ContainerPath] = info.IsDir()
	}
	return t, nil
}

// Stopped takes from the calls that stopped the pod how it was stopped.
func (t *Template) Stopped(stopped []Call) error {
	for _, c := range stopped {
		if c.method != "StopContainer" {
			continue
		}
		var stop runtimeapi.StopContainerRequest
		if err := proto.Unmarshal(c.request, &stop); err != nil {
			return fmt.Errorf("recorded %s: %w", c.method, err)
		}
		t.grace = stop.Timeout
		return nil
	}
	return errors.New("the recorded calls do not hold a pod's stop")
}

// Bare makes pods by the bare calls.
type Bare struct {
	cri      runtimeapi.RuntimeServiceClient
	cgroups  *cgroups.Manager
	template Template
}

// NewBare makes no call yet.
func NewBare(bed *testbed.Bed, t Template) (*Bare, error) {
	cfg := cgroups.Default()
	cfg.Names = cgroupNames(bed)
	m, err := cgroups.New(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &Bare{cri: bed.CRI(), cgroups: m, template: t}, nil
}

// barePod is a pod that is started and stopped by the bare calls.
type barePod struct {
	cri       runtimeapi.RuntimeServiceClient
	sandbox   *runtimeapi.RunPodSandboxRequest
	container *runtimeapi.CreateContainerRequest
	grace     int64

	sandboxID, containerID string
}

// pod makes the template's requests those of another pod. It also makes what
// is no part of what is measured: the pod's cgroup, and the files and folders
// that the requests name.
func (b *Bare) pod(ctx context.Context, name, uid string) (*barePod, error) {
	t := b.template
	p := &barePod{
		cri: b.cri, grace: t.grace,
		sandbox: &runtimeapi.RunPodSandboxRequest{}, container: &runtimeapi.CreateContainerRequest{},
	}
	if err := b.cgroups.Ensure(ctx, newPod(name, uid)); err != nil {
		return nil, err
	}
	rename := strings.NewReplacer(string(t.pod.UID), uid, t.pod.Name, name, t.root, t.root+"-bare")
	for _, m := range []struct{ from, to proto.Message }{{t.sandbox, p.sandbox}, {t.container, p.container}} {
		text, err := protojson.Marshal(m.from)
		if err != nil {
			return nil, err
		}
		if err := protojson.Unmarshal([]byte(rename.Replace(string(text))), m.to); err != nil {
			return nil, err
		}
	}
	logs := p.sandbox.GetConfig().GetLogDirectory()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(logs, p.container.GetConfig().GetLogPath())), 0o755); err != nil {
		return nil, err
	}
	for _, mount := range p.container.GetConfig().GetMounts() {
		make := makeFile
		if t.folders[mount.ContainerPath] {
			make = makeFolder
		}
		if err := make(mount.HostPath); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func makeFolder(path string) error { return os.MkdirAll(path, 0o755) }

// makeFile makes a file unless something of that name is there.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// start makes the three calls that any start takes.
func (p *barePod) start(ctx context.Context) error {
	sandbox, err := p.cri.RunPodSandbox(ctx, p.sandbox)
	if err != nil {
		return err
	}
	p.sandboxID = sandbox.PodSandboxId
	p.container.PodSandboxId = p.sandboxID
	container, err := p.cri.CreateContainer(ctx, p.container)
	if err != nil {
		return err
	}
	p.containerID = container.ContainerId
	_, err = p.cri.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: p.containerID})
	return err
}

// stop makes the three calls that any stop takes. Removing the sandbox removes
// the container.
func (p *barePod) stop(ctx context.Context) error {
	if _, err := p.cri.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: p.containerID, Timeout: p.grace}); err != nil {
		return err
	}
	if _, err := p.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandboxID}); err != nil {
		return err
	}
	_, err := p.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandboxID})
	return err
}
