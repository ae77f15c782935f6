package main

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
)

// audit writes down every container start. NoHook answers the other moments.
type audit struct {
	node.NoHook
	log *slog.Logger
}

func auditHook() nodefx.Option {
	return nodefx.AddHook("audit", func(log *slog.Logger) audit { return audit{log: log} })
}

// Started implements node.Hook.
func (a audit) Started(_ context.Context, pod *corev1.Pod, container, id string) error {
	a.log.Info("audit", "pod", pod.Name, "container", container, "id", id)
	return nil
}
