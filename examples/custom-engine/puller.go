package main

import (
	"context"
	"fmt"

	"nodekit.dev/node"
)

// hostImage is the only image there is: the host's own files.
const hostImage = "host"

// puller finds that image and no other.
type puller struct{}

// Pull implements [node.Puller].
func (puller) Pull(_ context.Context, req node.PullRequest) (node.PullResult, error) {
	if req.Image != hostImage {
		return node.PullResult{}, noImage(req.Image)
	}
	return node.PullResult{Ref: hostImage}, nil
}

// noImage is an error with a reason, as a container's status shows it.
type noImage string

func (e noImage) Error() string {
	return fmt.Sprintf("image %q: this node runs processes of the host; the only image is %q", string(e), hostImage)
}

// Reason is read by the pod machine.
func (noImage) Reason() string { return "ErrImagePull" }
