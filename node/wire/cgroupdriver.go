package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/resources"
)

// CgroupDriverAsker asks a runtime which cgroup driver it uses. It may block
// until ctx ends. A runtime that can not tell returns an error that answers
// Unimplemented() bool with true. The default is runtime/cri.
type CgroupDriverAsker interface {
	CgroupDriver(ctx context.Context) (string, error)
}

// cgroupDriverRetry is how long a runtime that does not answer is left alone.
const cgroupDriverRetry = 2 * time.Second

// CheckCgroupDriver is a part that asks the runtime for its cgroup driver, once
// it answers, and fails when that is not the driver by which cfg names cgroups:
// then no sandbox could start, each with a text that tells nobody why. A
// runtime that does not tell is trusted. Otherwise it runs until ctx ends.
func CheckCgroupDriver(cfg Config, asker CgroupDriverAsker) func(context.Context) error {
	want := cfg.Spec.Cgroups.Driver
	if want == "" {
		want = resources.Cgroupfs
	}
	return func(ctx context.Context) error {
		driver, err := askCgroupDriver(ctx, asker, cfg.Log)
		switch {
		case err != nil:
			return err
		case driver != "" && driver != string(want):
			return fmt.Errorf("cgroup driver: the runtime uses %q and the agent is configured for %q; set both to the same", driver, want)
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// askCgroupDriver asks until there is an answer; "" is that of a runtime that
// does not tell.
func askCgroupDriver(ctx context.Context, asker CgroupDriverAsker, log *slog.Logger) (string, error) {
	for {
		driver, err := asker.CgroupDriver(ctx)
		if err == nil {
			return driver, nil
		}
		var u interface{ Unimplemented() bool }
		if errors.As(err, &u) && u.Unimplemented() {
			log.Debug("the runtime does not tell its cgroup driver")
			return "", nil
		}
		log.Debug("the runtime's cgroup driver is not known yet", "err", err)
		if err := tasks.Pause(ctx, cgroupDriverRetry); err != nil {
			return "", err
		}
	}
}
