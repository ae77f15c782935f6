package stats

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	ioprioWhoProcess = 1
	ioprioIdle       = 3 << 13 // class idle
	lowestNice       = 19
)

// lowPriority ties the goroutine to its thread, which ends with it, and lets all
// others go before it: with the CPU, and at the disk. Where that is not allowed,
// the walk's rests must do.
func lowPriority() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowestNice)
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, 0, ioprioIdle)
}
