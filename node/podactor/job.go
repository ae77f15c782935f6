package podactor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// job is one action with all that it needs to know, copied when it starts: it
// runs beside the actor and shares nothing with it.
type job struct {
	*Actor
	action lifecycle.Action

	// pod is the spec, or for an orphan a pod with nothing but its names.
	pod    *corev1.Pod
	orphan bool
	static bool
	uid    string

	podIPs  []string
	hostIPs []string
	begun   bool // the pod has a sandbox
	// sandboxAttempt is the attempt of the sandbox that the action is about.
	sandboxAttempt uint32
	imageRef       string
	imageUser      string
	targetID       string // of the container that an ephemeral one is about
	preStopRan     bool
	container      runtime.Container // that the action is about, where there is one
	mounted        map[string]bool
	startedCalls   []*startedCall // that end before another hook is called
	minGrace       time.Duration
	over           bool // the pod is being taken away
	failedBefore   bool // the last try of the action failed
}

// job copies what the action may need from the state.
func (r *run) job(action lifecycle.Action) *job {
	j := &job{
		Actor: r.Actor, action: action,
		pod: r.want.Pod, orphan: r.want.Pod == nil, static: r.want.Static, uid: r.want.UID,
		imageRef:   r.seen.Images[action.Container].Ref,
		imageUser:  r.imageUser[action.Container],
		preStopRan: r.preStopRan[action.ContainerID],
		minGrace:   r.want.Rules.MinimumGrace,
		hostIPs:    r.want.Rules.HostIPs,
		over:       r.mem.Phase == lifecycle.Cleaning,
	}
	if last, failed := r.seen.Failed[action.Key]; failed {
		j.failedBefore = last.Kind == action.Kind
	}
	if j.orphan {
		j.pod = namesOnly(r.want)
	}
	if sandbox, ok := r.seen.Runtime.NewestSandbox(); ok {
		j.begun = sandbox.Ready
		j.podIPs = lifecycle.PodIPs(sandbox.IPs, j.hostIPs, sandbox.HostNetwork)
	}
	if target, ok := r.seen.Runtime.NewestContainer(targetName(j.pod, action.Container)); ok {
		j.targetID = target.ID
	}
	for _, s := range r.seen.Runtime.Sandboxes {
		if s.ID == action.SandboxID {
			j.sandboxAttempt = s.Attempt
		}
	}
	if action.Kind == lifecycle.RunHooksStopping || action.Kind == lifecycle.RunHooksCleanup {
		j.startedCalls = r.startedCalls()
	}
	if action.Kind == lifecycle.Unmount && action.Volume == "" {
		j.mounted = maps.Clone(r.seen.Mounted)
	}
	for _, c := range r.seen.Runtime.Containers {
		if c.ID == action.ContainerID {
			j.container = c
		}
	}
	return j
}

// namesOnly stands in for the pod of an orphan where a hook expects one.
func namesOnly(want lifecycle.Want) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(want.UID), Namespace: want.Namespace, Name: want.Name,
	}}
}

// errOrphan says that an action needs a spec and the pod has none.
var errOrphan = errors.New("the pod's spec is gone")

// do runs the action. The effect may be set beside an error.
func (j *job) do(ctx context.Context) (effect, error) {
	switch j.action.Kind {
	case lifecycle.Admit:
		return j.admit(ctx)
	case lifecycle.RunHooksPrepare:
		return j.prepare(ctx)
	case lifecycle.RunHooksStopping:
		return j.stopping(ctx)
	case lifecycle.RunHooksCleanup:
		return j.cleanup(ctx)
	case lifecycle.EnsureCgroup:
		return j.ensureCgroup(ctx)
	case lifecycle.RemoveCgroup:
		return j.removeCgroup(ctx)
	case lifecycle.Mount:
		return j.mount(ctx)
	case lifecycle.Unmount:
		return j.unmount(ctx)
	case lifecycle.RemovePodDir:
		return j.removePodDir(ctx)
	case lifecycle.Pull:
		return j.pull(ctx)
	case lifecycle.RunSandbox:
		return nil, j.runSandbox(ctx)
	case lifecycle.StopSandbox:
		return nil, j.stopSandbox(ctx)
	case lifecycle.RemoveSandbox:
		return nil, j.removeSandbox(ctx)
	case lifecycle.StartContainer:
		return j.startContainer(ctx)
	case lifecycle.StopContainer:
		return j.stopContainer(ctx)
	case lifecycle.RemoveContainer:
		return nil, j.removeContainer(ctx)
	case lifecycle.RunPostStart:
		return j.postStart(ctx)
	}
	return nil, fmt.Errorf("action %q is not known", j.action.Kind)
}

// spec finds the container of the action in the pod.
func (j *job) spec() (*corev1.Container, error) {
	name := j.action.Container
	for _, list := range [][]corev1.Container{j.pod.Spec.InitContainers, j.pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
		}
	}
	for i := range j.pod.Spec.EphemeralContainers {
		c := corev1.Container(j.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if c.Name == name {
			return &c, nil
		}
	}
	if j.orphan {
		return nil, fmt.Errorf("container %s: %w", name, errOrphan)
	}
	return nil, fmt.Errorf("container %s: not in the pod", name)
}
