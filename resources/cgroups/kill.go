package cgroups

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// killAll sends SIGKILL to every process in a cgroup and below it, and says to
// which. Processes that end by themselves meanwhile are no error.
func killAll(dir string) (killed []int, err error) {
	children, err := childDirs(dir)
	errs := []error{err}
	for _, child := range children {
		pids, err := killAll(child)
		killed, errs = append(killed, pids...), append(errs, err)
	}
	procs := filepath.Join(dir, "cgroup.procs")
	pids, _ := readWords(procs) // a cgroup that is gone has none
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		// The kernel shows processes of other PID namespaces as 0, which kill(2)
		// would take for our own group.
		if err != nil || n <= 1 || n == os.Getpid() {
			continue
		}
		if err := killIn(procs, n); err != nil {
			errs = append(errs, err)
			continue
		}
		killed = append(killed, n)
	}
	return killed, errors.Join(errs...)
}

// killIn kills a process if the cgroup still has it: the handle is taken
// before the second look, so that a PID that was given to another process
// meanwhile is never hit.
func killIn(procs string, pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	if pids, _ := readWords(procs); !slices.Contains(pids, strconv.Itoa(pid)) {
		return nil
	}
	if err := process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
