package cgroups

import (
	"context"
	"regexp"
	"strings"

	"nodekit.dev/resources"
)

// Slices are systemd's units of cgroups. systemd owns the tree with the driver
// of that name: a cgroup that it did not make it may empty of controllers or
// limits at any reload. Package resources/cgroups/systemd asks it over D-Bus.
// Both methods are idempotent, safe for concurrent use and give up with ctx.
type Slices interface {
	// Ensure makes the slice with those above it, or sets the limits of one that
	// exists. On cgroup v2 (unified) CPU shares become a weight.
	Ensure(ctx context.Context, name string, w Wanted, unified bool) error
	// Remove stops the slice, which has no processes any more. One that does not
	// exist is no error.
	Remove(ctx context.Context, name string) error
}

// unambiguous are the names in slices of UIDs that can be read back: those of
// the API server, and hashes.
var unambiguous = regexp.MustCompile(`^([0-9a-f]{8}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{12}|[^_]+)$`)

// readUID takes a UID from the name of its cgroup. In a slice "-" was written
// as "_", so that a name from which no single UID follows is not read at all:
// to take a living pod for one that is gone would kill it.
func readUID(driver resources.CgroupDriver, dir, example string) (uid string, ok bool) {
	before, after, _ := strings.Cut(example, exampleUID)
	uid, ok = strings.CutPrefix(dir, before)
	if !ok {
		return "", false
	}
	if driver == resources.Systemd {
		if uid, ok = strings.CutSuffix(uid, after); !ok || !unambiguous.MatchString(uid) {
			return "", false
		}
		uid = strings.ReplaceAll(uid, "_", "-")
	}
	return uid, checkUID(uid) == nil
}
