package podactor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/runtime"
)

// Environment fetches what the environment of a container names outside of its
// pod. The default is node/environment.
type Environment interface {
	// Environment blocks until all is there or known to be missing, ctx at the
	// latest. What does not exist is left out of the result, whether or not it
	// is optional; what can not be asked for now is an error, and the container
	// waits. Called concurrently, and anew for each start.
	Environment(ctx context.Context, req EnvironmentRequest) (EnvironmentResult, error)
}

// EnvironmentRequest names one container of a pod.
type EnvironmentRequest struct {
	Pod       *corev1.Pod
	Container string
	// Static pods start without services where there is nobody to ask.
	Static bool
}

// EnvironmentResult is what there is of what the container names. It is shared
// and must not be changed.
type EnvironmentResult struct {
	// ConfigMaps and Secrets of the pod's namespace, by name.
	ConfigMaps map[string]*corev1.ConfigMap
	Secrets    map[string]*corev1.Secret
	// Services are those whose addresses the container is told.
	Services []*corev1.Service
	// Files are the environment files in the pod's volumes.
	Files map[EnvFile][]byte
}

// EnvFile names a file in a volume of the pod.
type EnvFile struct{ Volume, Path string }

// RuntimeClasses knows the RuntimeClass objects of node.k8s.io. The default is
// node/wire's over node/objects.
type RuntimeClasses interface {
	// RuntimeHandler tells the runtime's handler of a class. It may block until
	// ctx ends and is called concurrently.
	RuntimeHandler(ctx context.Context, req RuntimeHandlerRequest) (RuntimeHandlerResult, error)
}

// RuntimeHandlerRequest names a class, never the default one.
type RuntimeHandlerRequest struct{ Class string }

// RuntimeHandlerResult is the handler; empty: the default one.
type RuntimeHandlerResult struct{ Handler string }

// UserNamespaces gives pods with hostUsers: false a range of the node's users.
// The default is resources/userns.
type UserNamespaces interface {
	// UserNamespace returns the same mapping on each call for one pod, also after
	// a restart of the agent. It may block and is called concurrently.
	UserNamespace(ctx context.Context, req UserNamespaceRequest) (UserNamespaceResult, error)
	// Release gives the pod's range back. Unknown UIDs are fine.
	Release(ctx context.Context, uid string) error
}

// UserNamespaceRequest names the pod.
type UserNamespaceRequest struct{ UID string }

// UserNamespaceResult is how its users are mapped.
type UserNamespaceResult struct{ Namespace runtime.UserNamespace }

// surroundings are what the runtime is told of a pod beyond its spec.
type surroundings struct {
	handler string
	user    *runtime.UserNamespace
}

func (j *job) surroundings(ctx context.Context) (s surroundings, err error) {
	if s.handler, err = j.runtimeHandler(ctx); err != nil {
		return s, err
	}
	if j.pod.Spec.HostUsers == nil || *j.pod.Spec.HostUsers {
		return s, nil
	}
	if j.parts.UserNamespaces == nil {
		return s, fmt.Errorf("can't set `spec.hostUsers: false`, this agent gives pods no user namespaces")
	}
	res, err := j.parts.UserNamespaces.UserNamespace(ctx, UserNamespaceRequest{UID: j.uid})
	s.user = &res.Namespace
	return s, err
}

func (j *job) runtimeHandler(ctx context.Context) (string, error) {
	class := j.pod.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	if j.parts.RuntimeClasses == nil {
		return "", fmt.Errorf("runtimeclass.node.k8s.io %q not found: this agent knows no runtime classes", *class)
	}
	res, err := j.parts.RuntimeClasses.RuntimeHandler(ctx, RuntimeHandlerRequest{Class: *class})
	return res.Handler, err
}

// sandboxSpec is the request for the configuration of the pod's sandbox.
func (s surroundings) sandboxSpec(pod *corev1.Pod, attempt uint32, hostIPs []string) SandboxSpecRequest {
	return SandboxSpecRequest{Pod: pod, Attempt: attempt, RuntimeHandler: s.handler, UserNamespace: s.user, HostIPs: hostIPs}
}

// environment fetches what the container's environment names.
func (j *job) environment(ctx context.Context) (EnvironmentResult, error) {
	if j.parts.Environment == nil {
		return EnvironmentResult{}, nil
	}
	return j.parts.Environment.Environment(ctx, EnvironmentRequest{Pod: j.pod, Container: j.action.Container, Static: j.static})
}

// warm asks for what the containers' environments name while the sandbox is
// being made, so that it is at hand when they start. What is wrong with it is
// for the start to tell.
func (j *job) warm(ctx context.Context) (stop func()) {
	if j.parts.Environment == nil {
		return func() {}
	}
	group := tasks.New(ctx)
	group.Go("environment", func(ctx context.Context) error {
		for _, list := range [][]corev1.Container{j.pod.Spec.InitContainers, j.pod.Spec.Containers} {
			for i := range list {
				if ctx.Err() != nil {
					return nil
				}
				_, _ = j.parts.Environment.Environment(ctx, EnvironmentRequest{Pod: j.pod, Container: list[i].Name, Static: j.static})
			}
		}
		return nil
	})
	return func() {
		group.Stop()
		_ = group.Wait() // a panic would be the start's, too
	}
}

// target is the container whose processes an ephemeral container is to see, if
// it asks for one.
func (j *job) target() (string, error) {
	name := targetName(j.pod, j.action.Container)
	if name == "" {
		return "", nil
	}
	if j.targetID == "" {
		return "", fmt.Errorf("unable to find target container %v", name)
	}
	return j.targetID, nil
}

func targetName(pod *corev1.Pod, container string) string {
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i]; c.Name == container {
			return c.TargetContainerName
		}
	}
	return ""
}
