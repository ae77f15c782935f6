package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// rotateOne moves a log aside and has the runtime open a new one. It returns
// the name the log was moved to.
func rotateOne(ctx context.Context, reopener Reopener, log Log, now time.Time) (string, error) {
	older, _, err := listRotated(log.Path)
	if err != nil {
		return "", err
	}
	aside := rotatedName(log.Path, older, now)
	err = os.Rename(log.Path, aside)
	if errors.Is(err, os.ErrNotExist) {
		// The agent died after renaming: the runtime still writes to the
		// newest rotated log.
		return "", reopener.ReopenContainerLog(ctx, log.ContainerID)
	}
	if err != nil {
		return "", err
	}
	if err := reopener.ReopenContainerLog(ctx, log.ContainerID); err != nil {
		return aside, errors.Join(fmt.Errorf("reopen log of container %s: %w", log.ContainerID, err), moveBack(aside, log.Path))
	}
	return aside, nil
}

// moveBack undoes the renaming, unless the runtime made a new log although it
// said it failed: a link never takes the place of a file.
func moveBack(aside, path string) error {
	err := os.Link(aside, path)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("move log back: %w", err)
	}
	return os.Remove(aside)
}

// removeExcess removes the oldest rotated logs until keep are left, the plain
// and the compressed form of one log counted once.
func removeExcess(path string, keep int) error {
	older, _, err := listRotated(path)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, l := range older {
		names[l.plain] = true
	}
	var errs []error
	removed := map[string]bool{}
	for _, l := range older {
		if !removed[l.plain] && len(names)-len(removed) <= keep {
			break
		}
		removed[l.plain] = true
		if err := os.Remove(l.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
