package probe

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
)

// Config says how probes are made.
type Config struct {
	// Checks has a check for each kind that containers may ask for. Package
	// checks has those of the API.
	Checks map[Kind]Check
	// Workers is how many checks are made at a time (0: 512). Each may hold a
	// socket and a source port.
	Workers int
	// Limits is how many checks of one kind are made at a time, so that one that
	// is slow delays no other: at most one less than Workers. Without a line a
	// kind has no limit of its own, but for Exec, each of which is work for the
	// container runtime: two for each CPU, at least 4. What has to wait is made
	// in the order in which it was due, and its timeout begins with the check.
	Limits map[Kind]int
	// Restored is what [Manager.Saved] gave before a restart.
	Restored []Saved
	// Observers are told of each check.
	Observers []Observer
	// Logger is nil for no logs.
	Logger *slog.Logger
}

const defaultWorkers = 512

// Validate says what is wrong, by field.
func (c Config) Validate() error {
	var errs []error
	if len(c.Checks) == 0 {
		errs = append(errs, wrong("Checks", "none: at least one kind must have a check"))
	}
	for kind, check := range c.Checks {
		if kind == "" || check == nil {
			errs = append(errs, wrong(fmt.Sprintf("Checks[%q]", kind), "must have a name and a check"))
		}
	}
	if c.Workers < 0 {
		errs = append(errs, wrong("Workers", fmt.Sprintf("%d: must not be negative", c.Workers)))
	}
	for kind, limit := range c.Limits {
		if limit < 1 {
			errs = append(errs, wrong(fmt.Sprintf("Limits[%q]", kind), fmt.Sprintf("%d: must be at least 1", limit)))
		}
		if c.Checks[kind] == nil {
			errs = append(errs, wrong(fmt.Sprintf("Limits[%q]", kind), "there is no check of this kind"))
		}
	}
	return errors.Join(errs...)
}

func wrong(field, text string) error { return fmt.Errorf("%s: %s", field, text) }

func (c Config) withDefaults() Config {
	if c.Workers == 0 {
		c.Workers = defaultWorkers
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// limit is how many checks of a kind are made at a time.
func (c Config) limit(kind Kind) int {
	limit, own := c.Limits[kind]
	if !own && kind == Exec {
		limit, own = max(4, 2*runtime.GOMAXPROCS(0)), true
	}
	if !own {
		return c.Workers
	}
	return min(limit, max(1, c.Workers-1))
}
