package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/clusterfx"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/register"
)

// rackLabel tells the cluster the node's site.
func rackLabel() nodefx.Option {
	return clusterfx.AddNodeSetter("site", func(s Site) register.SetterFunc {
		return func(_ context.Context, n *corev1.Node) error {
			n.Labels["vendor.example/site"] = s.Name
			return nil
		}
	}, register.SetReady)
}
