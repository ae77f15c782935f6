package stats

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/internal/tasks"
)

// BackendCondition is one adverse condition of what is behind a CSI driver.
type BackendCondition struct {
	// Status is "StorageDegraded" or "StorageUnreachable".
	Status          string
	Reason, Message string
}

// BackendReader asks CSI drivers for the health of what is behind them.
type BackendReader interface {
	// Drivers are those that can tell; it must not block.
	Drivers() []string
	// StorageHealth may block until ctx ends. An error leaves what was known, but for
	// one that answers NotFound: then the driver is gone.
	StorageHealth(ctx context.Context, driver string) ([]BackendCondition, error)
}

// Backends keeps what drivers report of what is behind them (NodeGetStorageHealth,
// gate CSIVolumeHealth). Use [NewBackends]. Safe for concurrent use.
type Backends struct {
	period time.Duration
	from   BackendReader
	log    *slog.Logger

	mu    sync.Mutex
	known map[string][]BackendCondition // by driver
}

// NewBackends makes it; every period each driver is asked, 0 or less: never.
func NewBackends(period time.Duration, from BackendReader, log *slog.Logger) *Backends {
	return &Backends{period: period, from: from, log: log, known: map[string][]BackendCondition{}}
}

// All are the conditions, by driver; those that are sound have none. It never
// blocks.
func (b *Backends) All() map[string][]BackendCondition {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.known)
}

// backendTime bounds one call.
const backendTime = 30 * time.Second

// Run asks until ctx ends, and returns its error.
func (b *Backends) Run(ctx context.Context) error {
	if b.period <= 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	for {
		b.ask(ctx)
		if err := tasks.Pause(ctx, b.period+rand.N(b.period/4+1)); err != nil {
			return err
		}
	}
}

// ask asks all drivers at once, so that a slow one holds up none.
func (b *Backends) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, backendTime)
	defer cancel()
	drivers := b.from.Drivers()
	b.mu.Lock()
	maps.DeleteFunc(b.known, func(driver string, _ []BackendCondition) bool { return !slices.Contains(drivers, driver) })
	b.mu.Unlock()
	group := tasks.New(ctx)
	for _, driver := range drivers {
		group.Go("storage-health", func(ctx context.Context) error {
			conditions, err := b.from.StorageHealth(ctx, driver)
			b.take(driver, conditions, err)
			return nil
		})
	}
	if err := group.Wait(); err != nil { // a reader that panics
		b.log.Error("asking for the health of storage failed", "err", err)
	}
}

func (b *Backends) take(driver string, conditions []BackendCondition, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case reasoned.NotFound(err):
		delete(b.known, driver)
	case err != nil:
		b.log.Debug("the health of a driver's storage is not known", "driver", driver, "err", err)
	default:
		slices.SortFunc(conditions, func(a, b BackendCondition) int {
			return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
		})
		if !slices.Equal(b.known[driver], conditions) {
			b.log.Info("the health of a driver's storage changed", "driver", driver, "conditions", conditions)
		}
		b.known[driver] = conditions
	}
}
