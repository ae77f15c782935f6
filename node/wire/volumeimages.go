package wire

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/volume/plugins"
)

// VolumeImages pulls the images of image volumes as those of containers are.
// Users of a pod are told of it; events nil: nobody is. Without a puller there
// are no image volumes.
func VolumeImages(p node.Puller, events node.EventSink) plugins.Images {
	if p == nil {
		return nil
	}
	return volumeImages{p, events}
}

type volumeImages struct {
	puller node.Puller
	events node.EventSink
}

func (v volumeImages) Image(ctx context.Context, pod *corev1.Pod, source corev1.ImageVolumeSource) (string, error) {
	req := podactor.PullRequest{Pod: pod, Image: source.Reference, Policy: source.PullPolicy}
	if v.events != nil {
		req.Tell = func(e lifecycle.Event) {
			v.events.PodEvent(node.PodEvent{UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Pod: pod, Event: e})
		}
	}
	res, err := v.puller.Pull(ctx, req)
	return res.Ref, err
}
