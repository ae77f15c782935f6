package main

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
)

// unbalanced is where a distribution switches CPU load balancing off for the
// cgroup of a pod that asks for it, once the cgroup is there. A constructor that
// asks for the seam it replaces gets the default.
type unbalanced struct {
	node.Cgroups
	log *slog.Logger
}

func unbalancedCPUs() nodefx.Option {
	return nodefx.Replace[node.Cgroups](func(c node.Cgroups, log *slog.Logger) unbalanced { return unbalanced{c, log} })
}

// Ensure implements node.Cgroups.
func (u unbalanced) Ensure(ctx context.Context, pod *corev1.Pod) error {
	err := u.Cgroups.Ensure(ctx, pod)
	if err == nil && pod.Annotations["vendor.example/cpu-load-balancing"] == "disable" {
		u.log.Info("CPU load balancing off", "pod", pod.Name)
	}
	return err
}
