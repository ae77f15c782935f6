package wire

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/objects"
	"nodekit.dev/resources"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// LocalObjects is the folder of Config.LocalObjects; nil without one. What it
// returns must run; changes go to contents.
func LocalObjects(cfg Config, contents *Contents) (*objects.Folder, []Part, error) {
	if cfg.LocalObjects == "" {
		return nil, nil, nil
	}
	folder, err := objects.NewFolder(cfg.LocalObjects, cfg.Log.With("part", "local-objects"))
	if err != nil {
		return nil, nil, err
	}
	contents.OnRelease(folder.Release)
	return folder, []Part{
		{"local-objects", folder.Run},
		{"local-object-changes", func(ctx context.Context) error { return contents.Follow(ctx, folder.Changes()) }},
	}, nil
}

// LocalConfigMaps are those of the folder for static pods, and of the cluster
// for all others. Either may be nil: then the other's are for all pods, and of
// neither there are none.
func LocalConfigMaps(folder *objects.Folder, cluster plugins.ConfigMaps, contents *Contents) plugins.ConfigMaps {
	switch {
	case folder == nil && cluster == nil:
		return nothing{}
	case folder == nil:
		return cluster
	case cluster == nil:
		return folder
	}
	return configMapsOf{folder, cluster, contents}
}

type configMapsOf struct {
	local, cluster plugins.ConfigMaps
	contents       *Contents
}

func (g configMapsOf) ConfigMap(ctx context.Context, uid types.UID, namespace, name string) (*corev1.ConfigMap, error) {
	if g.contents.static(uid) {
		return g.local.ConfigMap(ctx, uid, namespace, name)
	}
	return g.cluster.ConfigMap(ctx, uid, namespace, name)
}

// LocalSecrets are as LocalConfigMaps.
func LocalSecrets(folder *objects.Folder, cluster plugins.Secrets, contents *Contents) plugins.Secrets {
	switch {
	case folder == nil && cluster == nil:
		return nothing{}
	case folder == nil:
		return cluster
	case cluster == nil:
		return folder
	}
	return secretsOf{folder, cluster, contents}
}

type secretsOf struct {
	local, cluster plugins.Secrets
	contents       *Contents
}

func (g secretsOf) Secret(ctx context.Context, uid types.UID, namespace, name string) (*corev1.Secret, error) {
	if g.contents.static(uid) {
		return g.local.Secret(ctx, uid, namespace, name)
	}
	return g.cluster.Secret(ctx, uid, namespace, name)
}

// Environment gets what environments name from the getters; without Services
// there are none. Volumes are those that hold environment files.
func Environment(p ClusterParts, volumes environment.Volumes) (node.Environment, error) {
	services := p.Services
	if services == nil {
		services = nothing{}
	}
	return environment.New(environmentObjects{p.ConfigMaps, p.Secrets, services}, volumes)
}

type environmentObjects struct {
	plugins.ConfigMaps
	plugins.Secrets
	services environment.Services
}

func (o environmentObjects) Services(ctx context.Context, uid types.UID, namespace string) ([]*corev1.Service, error) {
	return o.services.Services(ctx, uid, namespace)
}

// nothing has no objects.
type nothing struct{}

func (nothing) ConfigMap(_ context.Context, _ types.UID, _, name string) (*corev1.ConfigMap, error) {
	return nil, &noSourceError{objects.KindConfigMap, "ConfigMaps", name}
}

func (nothing) Secret(_ context.Context, _ types.UID, _, name string) (*corev1.Secret, error) {
	return nil, &noSourceError{objects.KindSecret, "Secrets", name}
}

// noSourceError says why there is no such object.
type noSourceError struct{ kind, kinds, name string }

func (e *noSourceError) Error() string {
	return fmt.Sprintf("%s %q not found: this agent has no source of %s", e.kind, e.name, e.kinds)
}

// NotFound tells the class of the error.
func (e *noSourceError) NotFound() bool { return true }

func (nothing) Services(context.Context, types.UID, string) ([]*corev1.Service, error) {
	return nil, nil
}

// Sources are where volumes get their content from.
func Sources(cfg Config, p ClusterParts, this *ThisNode) plugins.Sources {
	return plugins.Sources{
		ConfigMaps: p.ConfigMaps, Secrets: p.Secrets, Tokens: p.Tokens,
		TrustBundles: p.TrustBundles, PodCertificates: p.PodCertificates,
		Allocatable: this.allocatable(cfg.Spec.Allocatable),
		TmpfsSize: func(pod *corev1.Pod) int64 {
			return resources.PodLimits(pod, cfg.Spec.CPUQuota).Memory
		},
		EmptyDirModes: cfg.Spec.EmptyDirModes, FileUsers: cfg.Spec.FileUsers,
	}
}

// VolumeConfig is how volumes are mounted. Users of a pod are told through
// events that its content can not be brought up to date; nil: nobody is. Without
// claims, nil, pods with one are refused. Mounts and unmounts are told to contents.
func VolumeConfig(cfg Config, events EventWriter, claims Claims, contents *Contents) volume.Config {
	out := cfg.Volume
	out.Observer = contents.hearing(out.Observer)
	if out.Claims == nil && claims != nil {
		out.Claims = claims
	}
	if out.Observer.RefreshFailed == nil && events != nil {
		out.Observer.RefreshFailed = func(pod *corev1.Pod, err error) { Warn(events, pod, "FailedMount", err.Error()) }
	}
	if out.Observer.OwnershipSlow == nil && events != nil {
		out.Observer.OwnershipSlow = func(pod *corev1.Pod, message string) {
			Warn(events, pod, "VolumePermissionChangeInProgress", message)
		}
	}
	return out
}

// Warn tells the users of a pod.
func Warn(events node.EventSink, pod *corev1.Pod, reason, message string) {
	events.PodEvent(node.PodEvent{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Pod: pod,
		Event: lifecycle.Event{Type: lifecycle.EventWarning, Reason: reason, Message: message},
	})
}
