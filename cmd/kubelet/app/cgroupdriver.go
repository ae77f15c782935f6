package app

import (
	"context"
	"log/slog"
	"time"

	"nodekit.dev/node/wire"
	"nodekit.dev/resources"
	"nodekit.dev/runtime/cri"
)

// driverWait is how long a start waits for a runtime to tell its cgroup driver:
// one that is away must not keep the agent from its API server.
const driverWait = 2 * time.Second

// followCgroupDriver takes the cgroup driver that the runtime tells, whatever
// the configuration says (KEP-4033): another one would start no container. A
// runtime that is not there yet, or does not tell, leaves the configured one;
// where it then tells another, the agent ends with that error, and finds the
// runtime's at its next start.
func followCgroupDriver(ctx context.Context, cfg *wire.Config, log *slog.Logger) {
	client, err := cri.New(cfg.CRI)
	if err != nil {
		return // the agent's own client will tell
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, driverWait)
	defer cancel()
	told, err := client.CgroupDriver(ctx)
	if err != nil {
		log.Debug("the runtime does not tell its cgroup driver; the configured one is used", "err", err)
		return
	}
	names := &cfg.Spec.Cgroups
	if driver := resources.CgroupDriver(told); driver != names.Driver {
		log.Info("the runtime's cgroup driver is used instead of the configured one", "runtime", told, "configured", string(names.Driver))
		names.Driver = driver
	}
}
