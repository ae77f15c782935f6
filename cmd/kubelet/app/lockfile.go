package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is how often a lock that another holds is tried: a wait for flock
// itself could not be cancelled.
const lockPause = 500 * time.Millisecond

// lockFile takes the lock of --lock-file and waits while another process has
// it. The lock is free when unlock is called or the process ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("unable to acquire file lock on %q: %w", path, err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("unable to acquire file lock on %q: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("unable to acquire file lock on %q: %w", path, ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// awaitContention returns when another process opens the lock file: the stock
// kubelet in its bootstrap mode then makes room. It also returns with ctx.
func awaitContention(ctx context.Context, path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("unable to watch lockfile: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_DELETE_SELF); err != nil {
		return fmt.Errorf("unable to watch lockfile %q: %w", path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = events.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 16*unix.SizeofInotifyEvent)
	if _, err := events.Read(buf); err != nil && ctx.Err() == nil {
		return fmt.Errorf("unable to watch lockfile %q: %w", path, err)
	}
	return nil
}
