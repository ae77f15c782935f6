package wire

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podspec"
	"nodekit.dev/probe"
)

// templateHash is the label by which a Deployment tells its pods apart
// (k8s.io/api/apps/v1, DefaultDeploymentUniqueLabelKey).
const templateHash = "pod-template-hash"

// Prober is package probe as a part of the pod machine. Its Run must run beside
// the manager's.
type Prober struct {
	manager *probe.Manager
	results chan node.ProbeResult
	file    string // empty: nothing is kept
	log     *slog.Logger
	restore sync.Once
}

// NewProber makes the prober's checks a part of a node. What they find is kept
// in the agent's root directory, unless containers are to begin anew with each
// agent (lifecycle.Rules.ProbesAfterRestart).
func NewProber(cfg Config, manager *probe.Manager) *Prober {
	p := &Prober{manager: manager, results: make(chan node.ProbeResult), log: cfg.Log.With("part", "probe")}
	if !cfg.Node.Rules.ProbesAfterRestart {
		p.file = filepath.Join(cfg.RootDir, probesFile)
	}
	return p
}

// Watch has the manager probe a run of a container.
func (p *Prober) Watch(req node.ProbeRequest) (node.ProbeResult, error) {
	p.restore.Do(p.read) // not before the root directory is this agent's
	state, err := p.manager.Watch(probed(req))
	return resultOf(state), err
}

// Rest ends the checks of a container.
func (p *Prober) Rest(req node.ProbeRequest) {
	p.manager.Rest(string(req.Pod.UID), req.Run.Container)
}

// Forget ends all there is of a pod.
func (p *Prober) Forget(uid string) { p.manager.ForgetPod(uid) }

// Results are the words of the manager for the pod machine.
func (p *Prober) Results() <-chan node.ProbeResult { return p.results }

// probed turns a run of the pod machine into one of package probe.
func probed(req node.ProbeRequest) probe.Container {
	out := probe.Container{
		Namespace: req.Pod.Namespace, Pod: req.Pod.Name, UID: string(req.Pod.UID),
		Name: req.Run.Container, ID: req.Run.ContainerID,
		Workload: workloadOf(req.Pod), Host: req.Run.Host, StartedAt: req.Run.StartedAt,
		WasStarted: req.Run.Started, WasReady: req.Run.Ready,
	}
	if c := lifecycle.FindContainer(req.Pod, req.Run.Container); c != nil {
		out.Ports = c.Ports
		out.Liveness, out.Readiness, out.Startup = specOf(c, c.LivenessProbe), specOf(c, c.ReadinessProbe), specOf(c, c.StartupProbe)
	}
	return out
}

// workloadOf is the pod's name without what controllers have added to that of
// the workload: a part of their own, and the hash of a Deployment's template. The
// stock kubelet's prober_ series carry it.
func workloadOf(pod *corev1.Pod) string {
	if pod.GenerateName == "" {
		return pod.Name
	}
	name := pod.Name
	if i := strings.LastIndex(name, "-"); i >= 0 {
		name = name[:i]
	}
	if hash := pod.Labels[templateHash]; hash != "" {
		name = strings.ReplaceAll(name, "-"+hash, "")
	}
	return name
}

func specOf(c *corev1.Container, p *corev1.Probe) *probe.Spec {
	if p == nil {
		return nil
	}
	spec := probe.SpecOf(p)
	if exec := spec.Handler.Exec; exec != nil {
		spec.Handler.Exec = &corev1.ExecAction{Command: podspec.ProbeCommand(c, exec.Command)}
	}
	return &spec
}

// Run passes on what the manager finds, and keeps it on disk, until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	group := tasks.New(ctx)
	group.Go("probe-results", p.passOn)
	group.Go("probe-file", p.keep)
	return group.Wait()
}

func (p *Prober) passOn(ctx context.Context) error {
	for {
		select {
		case state, open := <-p.manager.States():
			if !open {
				return nil
			}
			select {
			case p.results <- resultOf(state):
			case <-ctx.Done():
				return ctx.Err()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func resultOf(s probe.State) node.ProbeResult {
	return node.ProbeResult{UID: s.UID, Container: s.Container, Probe: lifecycle.Probe{
		ContainerID: s.ContainerID, Started: s.Started, Ready: s.Ready,
		Unhealthy: s.Unhealthy, Message: s.Message, Grace: s.Grace,
	}}
}
