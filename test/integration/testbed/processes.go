package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// daemonNames are containerd, the agent, and a control plane (test/cluster), as
// the kernel names them: it keeps only 15 bytes.
var daemonNames = []string{"containerd", "kubelet", "etcd", "kube-apiserver", "kube-controller", "kube-scheduler"}

// daemonsOf are those that have the slot's folder among their arguments. Other
// programs (an editor, tail) are not ours to end.
func daemonsOf(s *slot) []int {
	return processes(func(p procDir) bool { return slices.Contains(daemonNames, p.comm()) && p.mentions(s.dir) })
}

// shimsOf are the shims of the slot: they name its socket.
func shimsOf(s *slot) []int {
	return processes(func(p procDir) bool { return p.comm() == "containerd-shim" && p.mentions(s.dir) })
}

// processesInCgroups finds the processes that are in a cgroup with one of these names.
func processesInCgroups(names []string) []int {
	if len(names) == 0 {
		return nil
	}
	return processes(func(p procDir) bool {
		for _, line := range strings.Split(p.read("cgroup"), "\n") {
			for elem := range strings.SplitSeq(line, "/") {
				if slices.Contains(names, elem) {
					return true
				}
			}
		}
		return false
	})
}

// procDir is a process by its folder in /proc.
type procDir string

func (p procDir) read(file string) string {
	text, _ := os.ReadFile(filepath.Join(string(p), file)) // gone meanwhile: empty
	return string(text)
}

func (p procDir) comm() string { return strings.TrimSpace(p.read("comm")) }

func (p procDir) mentions(dir string) bool { return strings.Contains(p.read("cmdline"), dir+"/") }

// gone is also true for a zombie: nothing of it runs, and its parent, not we,
// will reap it.
func (p procDir) gone() bool {
	stat := p.read("stat")
	_, rest, _ := strings.Cut(stat, ") ") // the name before may hold spaces
	return rest == "" || strings.HasPrefix(rest, "Z")
}

func processes(match func(procDir) bool) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != os.Getpid() && match(procDir(dir)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endProcesses kills them and waits until they are gone.
func endProcesses(ctx context.Context, pids []int) error {
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return Eventually(ctx, 10*time.Millisecond, func(context.Context) error {
		for _, pid := range pids {
			if !procDir(fmt.Sprint("/proc/", pid)).gone() {
				return fmt.Errorf("process %d is still there", pid)
			}
		}
		return nil
	})
}
