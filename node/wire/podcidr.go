package wire

import (
	"context"
	"log/slog"
	"time"

	"nodekit.dev/internal/tasks"
)

// podCIDRRetry is how long a runtime that does not take the pod CIDR is left
// alone.
const podCIDRRetry = 2 * time.Second

// TellPodCIDR is a part that hands the pod CIDR of a node without a cluster to
// the runtime, with tell, until it took it. Then it runs until ctx ends.
func TellPodCIDR(cidr string, tell func(ctx context.Context, cidr string) error, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		told := ""
		for {
			err := tell(ctx, cidr)
			if err == nil {
				log.Info("the runtime knows the pod CIDR", "podCIDR", cidr)
				<-ctx.Done()
				return ctx.Err()
			}
			if err.Error() != told && ctx.Err() == nil {
				told = err.Error()
				log.Warn("Error updating pod CIDR; trying again", "podCIDR", cidr, "err", err)
			}
			if err := tasks.Pause(ctx, podCIDRRetry); err != nil {
				return err
			}
		}
	}
}
