package main

import (
	"context"
	"strings"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
)

// mirrored pulls everything from the vendor's mirror, whatever the pod says.
type mirrored struct{ node.Puller }

func mirror() nodefx.Option {
	return nodefx.Wrap("mirror", nil, func(p node.Puller) node.Puller { return mirrored{p} })
}

// Pull implements node.Puller.
func (m mirrored) Pull(ctx context.Context, req node.PullRequest) (node.PullResult, error) {
	if host, rest, ok := strings.Cut(req.Image, "/"); ok && strings.Contains(host, ".") {
		req.Image = "mirror.vendor.example/" + rest
	}
	return m.Puller.Pull(ctx, req)
}
