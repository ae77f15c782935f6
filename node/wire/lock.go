package wire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockName is the file that an agent holds locked in its root directory.
const lockName = "nodekit.lock"

// LockedError says that another agent works on the same root directory.
type LockedError struct {
	Dir   string
	Owner string // "NODE (pid N)", as the owner wrote it
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("root directory %s is in use by the agent %s; stop it, or give this one a RootDir of its own", e.Dir, e.Owner)
}

// Lock takes the root directory for this agent and returns how to give it back.
// The kernel gives it back when the process dies.
func Lock(dir, nodeName string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("root directory: %w", err)
	}
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("lock of the root directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(lockedBy(dir, path, err), f.Close())
	}
	if err := sign(f, nodeName); err != nil {
		return nil, errors.Join(fmt.Errorf("lock of the root directory: %w", err), f.Close())
	}
	return f.Close, nil
}

func lockedBy(dir, path string, err error) error {
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("lock of the root directory: %w", err)
	}
	owner, readErr := os.ReadFile(path)
	if readErr != nil || len(owner) == 0 {
		owner = []byte("unknown")
	}
	return &LockedError{Dir: dir, Owner: strings.TrimSpace(string(owner))}
}

// sign writes who holds the lock. A disk that is full does not keep the agent
// from its work, which frees space: the lock holds without the words.
func sign(f *os.File, nodeName string) error {
	owner := nodeName + " (pid " + strconv.Itoa(os.Getpid()) + ")\n"
	_, err := f.WriteAt([]byte(owner), 0)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Truncate(int64(len(owner)))
}
