// Command minimal-node runs one pod through a CRI runtime, with the whole
// agent in this process and no configuration file:
//
//	go run ./examples/minimal-node -socket /run/containerd/containerd.sock -image busybox
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
)

func main() {
	socket := flag.String("socket", "/run/containerd/containerd.sock", "CRI socket")
	image := flag.String("image", "busybox", "image of the pod")
	root := flag.String("root", "/var/lib/minimal-node", "directory of the agent")
	logs := flag.String("logs", "/var/log/minimal-node", "directory of the pods' logs")
	flag.Parse()
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "minimal", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir, cfg.CRI.Endpoint = *root, *logs, *socket
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg, *image, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run lives until ctx ends. The pod runs on: a second run finds it.
func run(ctx context.Context, cfg wire.Config, image string, out io.Writer) error {
	pods, err := source.NewChannel("go", source.Config{NodeName: cfg.NodeName, Log: cfg.Log})
	if err != nil {
		return err
	}
	if err := pods.Set([]*corev1.Pod{sleeper(image)}); err != nil {
		return err
	}
	agent, err := nodefx.New(
		nodefx.Config(cfg),
		nodefx.AddSource("go", pods),
		nodefx.AddStatusSink(printer{out}),
	)
	if err != nil {
		return err
	}
	if err := agent.Start(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-agent.Done():
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, agent.Stop(stopCtx))
}

func sleeper(image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "sleeper", Namespace: "default", UID: "11111111-1111-1111-1111-111111111111"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: image, Command: []string{"sleep", "3600"},
		}}},
	}
}

// printer shows each new status of a pod.
type printer struct{ out io.Writer }

var _ node.StatusSink = printer{}

// PodStatus implements [node.StatusSink].
func (p printer) PodStatus(u node.StatusUpdate) {
	fmt.Fprintf(p.out, "%s/%s: %s, machine %v\n", u.Namespace, u.Name, u.Status.Phase, u.Phase)
}
