// Command no-fx is minimal-node without fx: the parts are tied together by
// hand in package wire, and one of them is given by this program.
//
//	go run ./examples/no-fx -socket /run/containerd/containerd.sock -image busybox
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
)

func main() {
	socket := flag.String("socket", "/run/containerd/containerd.sock", "CRI socket")
	image := flag.String("image", "busybox", "image of the pod")
	root := flag.String("root", "/var/lib/no-fx", "directory of the agent")
	logs := flag.String("logs", "/var/log/no-fx", "directory of the pods' logs")
	flag.Parse()
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "no-fx", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir, cfg.CRI.Endpoint = *root, *logs, *socket

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg, *image, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg wire.Config, image string, out io.Writer) error {
	pods, err := source.NewChannel("go", source.Config{NodeName: cfg.NodeName})
	if err != nil {
		return err
	}
	sleeper := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "sleeper", Namespace: "default", UID: "22222222-2222-2222-2222-222222222222"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: image, Command: []string{"sleep", "3600"},
		}}},
	}
	if err := pods.Set([]*corev1.Pod{sleeper}); err != nil {
		return err
	}
	agent, err := wire.New(cfg, wire.WithSource(pods), wire.WithParts(func(p *wire.Parts) {
		p.Allocator = wire.AdmitAll() // any part may be given; those that are not are the defaults
		p.StatusSinks = append(p.StatusSinks, printer{out})
	}))
	if err != nil {
		return err
	}
	return agent.Run(ctx)
}

// printer shows each new status of a pod.
type printer struct{ out io.Writer }

// PodStatus implements [node.StatusSink].
func (p printer) PodStatus(u node.StatusUpdate) {
	fmt.Fprintf(p.out, "%s/%s: %s\n", u.Namespace, u.Name, u.Status.Phase)
}
