// Command add-a-hook is the drop-in kubelet with one hook of a vendor's, and the
// smallest such program. README.md shows it; its test holds the two together.
package main

import (
	"context"
	"log/slog"
	"os"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/cmd/kubelet/app"
	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
)

// audit sees every container start; NoHook answers the other moments.
type audit struct {
	node.NoHook
	log *slog.Logger
}

func (a *audit) Started(_ context.Context, pod *corev1.Pod, container, id string) error {
	a.log.Info("started", "pod", pod.Name, "container", container, "id", id)
	return nil
}

func main() {
	os.Exit(app.Main(os.Args[1:], app.Agent(func(*config.Loaded) ([]nodefx.Option, error) {
		return []nodefx.Option{
			nodefx.AddHook("audit", func(log *slog.Logger) *audit { return &audit{log: log} }),
		}, nil
	})))
}
