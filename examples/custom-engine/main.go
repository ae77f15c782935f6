// Command custom-engine runs pods without containers: an Engine, a Watcher and
// a Puller of its own make each container a plain process of this host, and all
// else (restarts, back-off, grace, hooks, statuses) is the stock pod machine.
//
//	go run ./examples/custom-engine sh -c 'date; sleep 5'
//
// Pods must say what they get: the host's network, and nothing that takes a
// container. Others are refused (admit.go). The processes end with the program.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runCommand(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runCommand runs one pod of one process.
func runCommand(ctx context.Context, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("usage: custom-engine COMMAND [ARGUMENT...]")
	}
	root, err := os.MkdirTemp("", "custom-engine-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	pods, err := source.NewChannel("go", source.Config{NodeName: "processes"})
	if err != nil {
		return err
	}
	if err := pods.Set([]*corev1.Pod{processPod("process", command)}); err != nil {
		return err
	}
	return run(ctx, config(root), pods, os.Stdout)
}

// config has the pods' logs below root too: root/logs/NAMESPACE_NAME_UID.
func config(root string) wire.Config {
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "processes", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir = root, filepath.Join(root, "logs")
	cfg.Node.DrainOnStop, cfg.Node.DrainTimeout = true, 20*time.Second
	return cfg
}

// processPod is a pod that this engine can run.
func processPod(name string, command []string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{
			HostNetwork: true,
			Containers:  []corev1.Container{{Name: "main", Image: hostImage, Command: command}},
		},
	}
}

// run lives until ctx ends and all processes with it.
func run(ctx context.Context, cfg wire.Config, pods node.Source, out io.Writer) error {
	agent, err := nodefx.New(
		nodefx.Config(cfg),
		nodefx.Provide(newEngine),
		nodefx.Replace[node.Engine](func(e *engine) *engine { return e }),
		nodefx.Replace[node.Watcher](func(e *engine) *engine { return e }),
		nodefx.Replace[handlers.Execer](func(e *engine) *engine { return e }),
		nodefx.Replace[node.Puller](func() puller { return puller{} }),
		nodefx.AddAdmitter("processes-only", admitter{}),
		nodefx.AddSource(pods.Name(), pods),
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

// printer shows each new status of a pod.
type printer struct{ out io.Writer }

// PodStatus implements [node.StatusSink].
func (p printer) PodStatus(u node.StatusUpdate) {
	text := fmt.Sprintf("%s %s %s", u.Name, u.Status.Phase, u.Status.Reason)
	for _, c := range u.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			text += fmt.Sprintf(" %s=running(restarts %d)", c.Name, c.RestartCount)
		case c.State.Terminated != nil:
			text += fmt.Sprintf(" %s=exited(%d %q)", c.Name, c.State.Terminated.ExitCode, c.State.Terminated.Message)
		case c.State.Waiting != nil:
			text += fmt.Sprintf(" %s=waiting(%s)", c.Name, c.State.Waiting.Reason)
		}
	}
	fmt.Fprintln(p.out, text)
}
