package logs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	stampLayout = "20060102-150405"
	gzSuffix    = ".gz"
	tmpSuffix   = ".tmp"
)

// rotated is one rotated log of some log.
type rotated struct {
	path  string    // with .gz where it is compressed
	plain string    // without
	stamp time.Time // the local time of the rotation, see wallClock
	gz    bool
}

// listRotated returns the rotated logs of a log, oldest first, and the
// temporary files of compressions. A rotated log that is there both plain and
// compressed occurs twice, plain first.
func listRotated(path string) (logs []rotated, temps []string, err error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), base+".")
		if !ok || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, e.Name())
		plainSuffix, gz := strings.CutSuffix(suffix, gzSuffix)
		plainSuffix, tmp := strings.CutSuffix(plainSuffix, tmpSuffix)
		stamp, err := time.Parse(stampLayout, plainSuffix)
		switch {
		case err != nil:
		case tmp && !gz:
			temps = append(temps, name)
		case !tmp:
			logs = append(logs, rotated{path: name, plain: path + "." + plainSuffix, stamp: stamp, gz: gz})
		}
	}
	// The stamp sorts as text does; ReadDir sorted the names.
	slices.SortStableFunc(logs, func(a, b rotated) int { return strings.Compare(a.plain, b.plain) })
	return logs, temps, nil
}

// Files returns all files that belong to a log: the log itself, its rotated
// logs and leftovers of compressions. Whoever removes a container's log removes
// these. A missing directory gives none.
func Files(path string) ([]string, error) {
	logs, temps, err := listRotated(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	if _, err := os.Lstat(path); err == nil {
		out = append(out, path)
	}
	for _, l := range logs {
		out = append(out, l.path)
	}
	return append(out, temps...), nil
}

// rotatedName is the name to rotate to at now: stamps rise by at least a
// second, so that no name is taken and the order stays, however quickly (or
// with the clock set back) rotations follow.
func rotatedName(path string, existing []rotated, now time.Time) string {
	stamp := wallClock(now)
	for _, l := range existing {
		if !stamp.After(l.stamp) {
			stamp = l.stamp.Add(time.Second)
		}
	}
	return path + "." + stamp.Format(stampLayout)
}

// wallClock is a moment as a clock on the wall shows it, in whole seconds and
// without a zone: the stamps of rotated logs, which stay in order even when
// the zone's offset changes.
func wallClock(t time.Time) time.Time {
	t = t.Local()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
