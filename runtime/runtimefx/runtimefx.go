// Package runtimefx provides the parts of package runtime in an fx graph: the
// CRI client, the observer, log rotation and the check of the cgroup driver,
// which run, and the seams that they stand in. It holds no logic.
package runtimefx

import (
	"context"

	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/logs"
	"nodekit.dev/runtime/observe"
)

// Module provides *cri.Client, node.Engine, node.Watcher, node.Puller,
// images.PullAuth, handlers.Execer, *wire.RunningLogs and what the runtime can do. Nothing of it
// is built that nobody asks for. It asks for a wire.Config and a
// *fxrun.Runner.
func Module() fx.Option {
	return fx.Provide(client, engine, watcher, runningLogs, puller, pullAuth, wire.Execer, features, nodeFacts)
}

func client(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config) (*cri.Client, error) {
	c, err := cri.New(cfg.CRI)
	if err == nil {
		r.Hold(lc, "runtime-client", nil, func(context.Context) error { return c.Close() })
	}
	return c, err
}

func watcher(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, c *cri.Client) (node.Watcher, error) {
	o, err := observe.New(cfg.Observe, c)
	if err != nil {
		return nil, err
	}
	r.Run(lc, "runtime-observe", o.Run)
	return wire.Watcher(o), nil
}

// runningLogs learns what runs from the watcher that the node looks through.
func runningLogs(cfg wire.Config) *wire.RunningLogs { return wire.NewRunningLogs(cfg.PodLogsDir) }

// engine also runs log rotation and the check of the cgroup driver: it is the
// engine whose containers write logs and stand in cgroups.
func engine(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, c *cri.Client, running *wire.RunningLogs) (node.Engine, error) {
	rotator, err := logs.NewRotator(cfg.Logs, running, c)
	if err != nil {
		return nil, err
	}
	running.OnChange(rotator.Refresh)
	r.Run(lc, "log-rotation", rotator.Run)
	r.Run(lc, "cgroup-driver", wire.CheckCgroupDriver(cfg, c))
	if cfg.PodCIDR != "" {
		r.Run(lc, "pod-cidr", wire.TellPodCIDR(cfg.PodCIDR, c.UpdateRuntimeConfig, cfg.Log.With("part", "pod-cidr")))
	}
	return wire.Engine(c), nil
}

func puller(cfg wire.Config, c *cri.Client, auth images.PullAuth) (node.Puller, error) {
	cfg.Images.Auth = auth
	p, err := images.New(cfg.Images, c)
	if err != nil {
		return nil, err
	}
	return wire.Puller(p, c), nil
}

// pullAuth is what the configuration says, or nobody's.
func pullAuth(cfg wire.Config) images.PullAuth {
	if cfg.Images.Auth == nil {
		return anonymous{}
	}
	return cfg.Images.Auth
}

type anonymous struct{}

func (anonymous) Credentials(context.Context, images.Request) ([]runtime.ImageAuth, error) {
	return nil, nil
}

// Features tells what a runtime handler can do.
type Features func(handler string) podspec.RuntimeFeatures

func features(c *cri.Client) Features { return wire.Features(c) }

// NodeFacts are what the Node object says of the runtime, and what the runtime is
// told of the node. All are nil where the runtime is none that speaks the CRI.
type NodeFacts struct {
	Client  *cri.Client
	Images  func(context.Context) ([]runtime.ImageInfo, error)
	PodCIDR func(ctx context.Context, cidrs string) error
}

func nodeFacts(c *cri.Client) NodeFacts {
	return NodeFacts{Client: c, Images: c.ListImages, PodCIDR: c.UpdateRuntimeConfig}
}
