// Command local-objects is an agent for an appliance without an API server: its
// pods, and the ConfigMaps and Secrets that they refer to, are files in two
// folders. Who changes a file changes what runs, within moments:
//
//	go run ./examples/local-objects -socket /run/containerd/containerd.sock \
//		-pods examples/local-objects/pods -objects examples/local-objects/objects
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
	"path/filepath"
	"syscall"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
)

func main() {
	socket := flag.String("socket", "/run/containerd/containerd.sock", "CRI socket")
	pods := flag.String("pods", "/etc/appliance/pods", "folder of pods")
	objects := flag.String("objects", "/etc/appliance/objects", "folder of ConfigMaps and Secrets")
	root := flag.String("root", "/var/lib/local-objects", "directory of the agent")
	logs := flag.String("logs", "/var/log/local-objects", "directory of the pods' logs")
	flag.Parse()
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "appliance", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir, cfg.CRI.Endpoint = *root, *logs, *socket
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg, *pods, *objects, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run lives until ctx ends; the pods run on.
func run(ctx context.Context, cfg wire.Config, pods, objects string, out io.Writer) (err error) {
	if pods, err = filepath.Abs(pods); err != nil {
		return err
	}
	if cfg.LocalObjects, err = filepath.Abs(objects); err != nil {
		return err
	}
	agent, err := nodefx.New(
		nodefx.Config(cfg),
		nodefx.AddSource("file", func(w node.Watcher) (*source.Dir, error) {
			return source.NewDir(source.DirConfig{
				Config: source.Config{
					NodeName: cfg.NodeName, Adopter: source.AdoptFrom(w.List), Log: cfg.Log,
					Refuse: source.RefuseReferences(true), // tokens and claims need an API server
				},
				Path: pods, Period: 20 * time.Second,
			})
		}),
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

// PodStatus implements node.StatusSink.
func (p printer) PodStatus(u node.StatusUpdate) {
	fmt.Fprintf(p.out, "%s/%s: %s\n", u.Namespace, u.Name, u.Status.Phase)
}
