// Command volume-plugin is an agent with a volume plugin of a vendor's own
// (plugin.go, which is all of it): flexVolume volumes of the driver
// "example.com/scratch" are file systems in memory of the size that the pod asks
// for.
//
//	go run ./examples/volume-plugin -socket /run/containerd/containerd.sock -image busybox
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
	"nodekit.dev/volume"
)

func main() {
	socket := flag.String("socket", "/run/containerd/containerd.sock", "CRI socket")
	image := flag.String("image", "busybox", "image of the pod")
	root := flag.String("root", "/var/lib/volume-plugin", "directory of the agent")
	logs := flag.String("logs", "/var/log/volume-plugin", "directory of the pods' logs")
	flag.Parse()
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "volume-plugin", []string{"192.0.2.1"}
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
	if err := pods.Set([]*corev1.Pod{scratchPod(image)}); err != nil {
		return err
	}
	agent, err := wire.New(cfg, wire.WithSource(pods), wire.WithParts(func(p *wire.Parts) {
		p.VolumePlugins = append(p.VolumePlugins, node.Ordered[volume.Plugin]{Name: "scratch", Value: scratch{}})
		p.StatusSinks = append(p.StatusSinks, printer{out})
	}))
	if err != nil {
		return err
	}
	return agent.Run(ctx)
}

// scratchPod has a volume of the plugin.
func scratchPod(image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "default", UID: "33333333-3333-3333-3333-333333333333"},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{
				FlexVolume: &corev1.FlexVolumeSource{Driver: driver, Options: map[string]string{"size": "32m"}},
			}}},
			Containers: []corev1.Container{{
				Name: "main", Image: image, Command: []string{"sleep", "3600"},
				VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/work"}},
			}},
		},
	}
}

// printer shows each new status of a pod.
type printer struct{ out io.Writer }

// PodStatus implements [node.StatusSink].
func (p printer) PodStatus(u node.StatusUpdate) {
	fmt.Fprintf(p.out, "%s/%s: %s\n", u.Namespace, u.Name, u.Status.Phase)
}
