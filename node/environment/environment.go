package environment

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/podactor"
)

// Objects is where ConfigMaps, Secrets and Services come from, such as
// node/objects. Its methods may block until ctx ends and are called
// concurrently. An error that answers NotFound() bool with true says that there
// is no such object.
type Objects interface {
	ConfigMap(ctx context.Context, uid types.UID, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, uid types.UID, namespace, name string) (*corev1.Secret, error)
	Services
}

// Services finds Services for the pod of that UID.
type Services interface {
	// Services are all of one namespace. It may block until ctx ends and is
	// called concurrently.
	Services(ctx context.Context, uid types.UID, namespace string) ([]*corev1.Service, error)
}

// Volumes says where the volumes of a pod are; a node.Mounter does.
type Volumes interface {
	Mount(ctx context.Context, req podactor.MountRequest) (podactor.MountResult, error)
}

// Environment is a podactor.Environment. Use [New]. Safe for concurrent use.
type Environment struct {
	objects Objects
	volumes Volumes
}

var _ podactor.Environment = (*Environment)(nil)

// New checks its parts. Without volumes, environment files can not be read.
func New(objects Objects, volumes Volumes) (*Environment, error) {
	if objects == nil {
		return nil, errors.New("environment: objects must not be nil")
	}
	return &Environment{objects: objects, volumes: volumes}, nil
}

// staticPatience is how long a static pod waits for its services: it is not to
// be held up by an API server that is away.
const staticPatience = 250 * time.Millisecond

// masterNamespace has the service "kubernetes", which every container is told of.
const masterNamespace = corev1.NamespaceDefault

// Environment fetches all that the container names.
func (e *Environment) Environment(ctx context.Context, req podactor.EnvironmentRequest) (podactor.EnvironmentResult, error) {
	names := namesOf(req.Pod, req.Container)
	result, err := e.fetch(ctx, req, names)
	if err != nil {
		return podactor.EnvironmentResult{}, reasoned.New("CreateContainerConfigError", err).After(reasoned.RetryAfter(err, 0))
	}
	return result, nil
}

func (e *Environment) fetch(ctx context.Context, req podactor.EnvironmentRequest, names names) (result podactor.EnvironmentResult, err error) {
	pod := req.Pod
	result.ConfigMaps, err = gather(names.configMaps, func(name string) (*corev1.ConfigMap, error) {
		return e.objects.ConfigMap(ctx, pod.UID, pod.Namespace, name)
	})
	if err != nil {
		return result, err
	}
	result.Secrets, err = gather(names.secrets, func(name string) (*corev1.Secret, error) {
		return e.objects.Secret(ctx, pod.UID, pod.Namespace, name)
	})
	if err != nil {
		return result, err
	}
	if result.Services, err = e.services(ctx, req); err != nil {
		return result, err
	}
	result.Files, err = e.files(ctx, pod, names.files)
	return result, err
}

// gather gets each name once. What does not exist is left out.
func gather[T any](names []string, get func(name string) (T, error)) (map[string]T, error) {
	var found map[string]T
	for _, name := range names {
		object, err := get(name)
		switch {
		case missing(err):
			continue
		case err != nil:
			return nil, err
		}
		if found == nil {
			found = map[string]T{}
		}
		found[name] = object
	}
	return found, nil
}

func missing(err error) bool {
	var e interface{ NotFound() bool }
	return errors.As(err, &e) && e.NotFound()
}

// services are those of the pod's namespace, unless it does without, and the
// one that every container is told of.
func (e *Environment) services(ctx context.Context, req podactor.EnvironmentRequest) ([]*corev1.Service, error) {
	if req.Static {
		patient, cancel := context.WithTimeout(ctx, staticPatience)
		defer cancel()
		services, err := e.allServices(patient, req.Pod)
		if err != nil && ctx.Err() == nil {
			return nil, nil // it starts without, as with the stock kubelet
		}
		return services, err
	}
	services, err := e.allServices(ctx, req.Pod)
	if err != nil {
		return nil, fmt.Errorf("services have not yet been read at least once, cannot construct envvars: %w", err)
	}
	return services, nil
}

func (e *Environment) allServices(ctx context.Context, pod *corev1.Pod) ([]*corev1.Service, error) {
	services, err := e.objects.Services(ctx, pod.UID, masterNamespace)
	links := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
	if err != nil || !links || pod.Namespace == masterNamespace {
		return services, err
	}
	own, err := e.objects.Services(ctx, pod.UID, pod.Namespace)
	return append(services[:len(services):len(services)], own...), err
}
