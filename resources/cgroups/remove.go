package cgroups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nodekit.dev/internal/reasoned"
)

// pollEvery is how often a busy cgroup is looked at. The kernel tells of empty
// cgroups only in v2; a process that is being reaped is gone in milliseconds.
const pollEvery = 10 * time.Millisecond

// killEvery is how often what is left is killed: processes that were just being
// made are missed at first.
const killEvery = 100 * time.Millisecond

// Remove removes the pod's cgroup with whatever is below it, from every
// hierarchy and wherever its class may have put it. Nothing of the pod may be
// wanted any more: processes that have not left after Config.KillAfter are
// killed, since a runtime whose start of a container was cut off can forget
// them. A cgroup that has processes even after Config.BusyWait is an error with
// the reason "CgroupBusy".
func (m *Manager) Remove(ctx context.Context, uid string) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	trees, err := hierarchies(m.cfg.Mount)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.BusyWait, errStillBusy)
	defer cancel()
	var errs []error
	for _, path := range m.cfg.Names.Candidates(uid) {
		errs = append(errs, m.removePath(ctx, trees, path))
	}
	return errors.Join(errs...)
}

// removePath removes one cgroup from all hierarchies. Its slice goes last:
// systemd would give processes that are left a minute and a half to end.
func (m *Manager) removePath(ctx context.Context, trees []hierarchy, path string) error {
	var errs []error
	for _, tree := range trees {
		errs = append(errs, m.removeTree(ctx, filepath.Join(tree.dir, path)))
	}
	if err := errors.Join(errs...); err != nil || m.slices == nil {
		return err
	}
	return m.slices.Remove(ctx, filepath.Base(path))
}

var errStillBusy = errors.New("still has processes")

// removeTree removes a cgroup from the leaves up. It waits for processes to
// leave, then kills them, for as long as ctx lives.
func (m *Manager) removeTree(ctx context.Context, dir string) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	patience := time.NewTimer(m.cfg.KillAfter)
	defer patience.Stop()
	for {
		err := removeOnce(dir)
		if !isBusy(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-patience.C:
			m.killLeft(dir)
			patience.Reset(killEvery)
		case <-ctx.Done():
			return busyError(ctx, err)
		}
	}
}

// killLeft kills what is left in a cgroup. Whether it worked shows when the
// cgroup can be removed.
func (m *Manager) killLeft(dir string) {
	pids, err := killAll(dir)
	if len(pids) > 0 || err != nil {
		m.log.Warn("killed what was left in the cgroup of a pod", "cgroup", dir, "pids", pids, "err", err)
	}
}

func removeOnce(dir string) error {
	children, err := childDirs(dir)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := removeOnce(child); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isBusy: processes are in it, or a cgroup was made below it meanwhile.
func isBusy(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY)
}

// busyError names the cgroup that would not go and who is in it.
func busyError(ctx context.Context, err error) error {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err
	}
	pids, _ := readWords(filepath.Join(at.Path, "cgroup.procs")) // only to tell more
	err = fmt.Errorf("cgroup %s: %w (pids: %s)", at.Path, context.Cause(ctx), strings.Join(pids, " "))
	return reasoned.New("CgroupBusy", err).After(time.Second)
}
