// Package runtimefx provides the parts of package runtime in an fx graph: the
// CRI client, the observer and log rotation, which run, and the seams that
// they stand in. It holds no logic.
package runtimefx

import (
	"go.uber.org/fx"

	"nodekit.dev/internal/fxrun"
	"nodekit.dev/node"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/logs"
	"nodekit.dev/runtime/observe"
)

// Module provides *cri.Client, node.Engine, node.Watcher, node.Puller and what
// the runtime can do. Nothing of it is built that nobody asks for. It asks for
// a wire.Config and a *fxrun.Runner.
func Module() fx.Option {
	return fx.Provide(client, wire.Engine, watcher, puller, features)
}

func client(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config) (*cri.Client, error) {
	c, err := cri.New(cfg.CRI)
	if err == nil {
		r.Close(lc, "runtime-client", c.Close)
	}
	return c, err
}

// watcher also runs log rotation, which lives off what the watcher sees.
func watcher(lc fx.Lifecycle, r *fxrun.Runner, cfg wire.Config, c *cri.Client) (node.Watcher, error) {
	o, err := observe.New(cfg.Observe, c)
	if err != nil {
		return nil, err
	}
	w := wire.Watcher(o)
	rotator, err := logs.NewRotator(cfg.Logs, wire.RunningLogs(w, cfg.PodLogsDir), c)
	if err != nil {
		return nil, err
	}
	r.Run(lc, "runtime-observe", o.Run)
	r.Run(lc, "log-rotation", rotator.Run)
	return w, nil
}

func puller(cfg wire.Config, c *cri.Client) (node.Puller, error) {
	p, err := images.New(cfg.Images, c)
	if err != nil {
		return nil, err
	}
	return wire.Puller(p, c), nil
}

// Features tells what a runtime handler can do.
type Features func(handler string) podspec.RuntimeFeatures

func features(c *cri.Client) Features { return wire.Features(c) }
