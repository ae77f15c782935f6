package wire

import (
	"context"
	"fmt"
	"strconv"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node"
	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/images"
)

// Puller pulls images through p; service answers whom an image runs as.
func Puller(p *images.Puller, service images.Service) node.Puller {
	return puller{p, service}
}

type puller struct {
	images  *images.Puller
	service images.Service
}

func (p puller) Pull(ctx context.Context, req podactor.PullRequest) (podactor.PullResult, error) {
	ref, err := p.images.Pull(ctx, images.Request{
		PodUID: string(req.Pod.UID), PodNamespace: req.Pod.Namespace, PodName: req.Pod.Name,
		PodCreated: req.Pod.CreationTimestamp.Time,
		Container:  req.Container, Image: req.Image, Policy: string(req.Policy), Sandbox: req.Sandbox,
		Observer: imageEvents(req.Tell),
	})
	if err != nil {
		return podactor.PullResult{}, err
	}
	user, err := p.user(ctx, ref, req.Sandbox.RuntimeHandler)
	return podactor.PullResult{Ref: ref, User: user}, err
}

// user is whom the image asks to run as: a number where it gives one.
func (p puller) user(ctx context.Context, ref, handler string) (string, error) {
	info, found, err := p.service.ImageStatus(ctx, runtime.ImageSpec{Image: ref, RuntimeHandler: handler})
	switch {
	case err != nil:
		return "", reasoned.New(images.ReasonInspect, err)
	case !found:
		return "", reasoned.New(images.ReasonInspect, fmt.Errorf("image %q is not there any more", ref))
	case info.UID != nil:
		return strconv.FormatInt(*info.UID, 10), nil
	}
	return info.User, nil
}
