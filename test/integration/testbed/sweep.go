package testbed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// sweep removes all that lives or lies in a slot, whoever left it: a bed that
// is stopped, or a run that was killed. It finds things by the slot's names
// alone, and an empty slot costs next to nothing.
func sweep(ctx context.Context, s *slot) error {
	ids := containerIDs(s)
	steps := []struct {
		name string
		do   func() error
	}{
		// Daemons first: none must start again what the next steps end.
		{"end daemons", func() error { return endProcesses(ctx, daemonsOf(s)) }},
		{"end containers", func() error { return endProcesses(ctx, processesInCgroups(append(ids, s.name()))) }},
		{"end shims", func() error { return endProcesses(ctx, shimsOf(s)) }},
		{"unmount", func() error { return unmountBelow(s.dir) }},
		{"detach loop devices", func() error { return detachBelow(ctx, s.dir) }},
		{"remove cgroups", func() error { return removeCgroups(ctx, append(ids, s.name())) }},
		{"remove the network namespace", func() error { return removeNamespace(ctx, s) }},
		{"remove the bridge", func() error { return removeBridge(ctx, s.name()) }},
		{"remove host port rules", func() error { return removeHostPorts(ctx, s.name()) }},
		{"remove shim sockets", func() error { return removeShimSockets(s, ids) }},
		{"remove CNI results", func() error { return removeCNIResults(s.name()) }},
		{"remove the folder", func() error { return os.RemoveAll(s.dir) }},
	}
	var errs []error
	for _, step := range steps {
		if err := step.do(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.name, err))
		}
	}
	return errors.Join(errs...)
}

// sweepAbandoned sweeps every slot whose owner was killed.
func sweepAbandoned(ctx context.Context) error {
	slots, err := abandonedSlots()
	for _, s := range slots {
		err = errors.Join(err, sweep(ctx, s), s.release())
	}
	return err
}

// bundleDir holds one folder per container that has a shim.
func (s *slot) bundleDir() string { return s.path("state", "io.containerd.runtime.v2.task", "k8s.io") }

// containerIDs are the containers that have a shim's folder in the slot.
func containerIDs(s *slot) []string {
	entries, _ := os.ReadDir(s.bundleDir())
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

// unmountBelow takes away every mount below dir, the newest first, since a
// later mount may lie on an earlier one.
func unmountBelow(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(table)), "\n")
	slices.Reverse(lines)
	var errs []error
	for _, line := range lines {
		point := mountPoint(line)
		if !strings.HasPrefix(point, dir+"/") {
			continue
		}
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// detachBelow takes the loop devices away that have their files below dir, which
// drivers of volumes left.
func detachBelow(ctx context.Context, dir string) error {
	backings, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, backing := range backings {
		file, _ := os.ReadFile(backing) // it may just have been detached
		if strings.HasPrefix(string(file), dir+"/") {
			_, failed := command(ctx, "losetup", "--detach", "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(backing))))
			err = errors.Join(err, failed)
		}
	}
	return err
}

// mountPoint is the fifth field of a line of mountinfo, with the kernel's
// octal escapes for blanks undone.
func mountPoint(line string) string {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return ""
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
}

// shimSocket finds the socket of a shim, which lies outside of the slot, in
// the files of its bundle: address (containerd 1.6) or bootstrap.json (2).
var shimSocket = regexp.MustCompile(`unix://(/run/containerd/s/[0-9a-f]+)`)

func removeShimSockets(s *slot, ids []string) error {
	var errs []error
	for _, id := range ids {
		for _, file := range []string{"address", "bootstrap.json"} {
			text, _ := os.ReadFile(filepath.Join(s.bundleDir(), id, file))
			if m := shimSocket.FindSubmatch(text); m != nil {
				errs = append(errs, removeIfThere(string(m[1])))
			}
		}
	}
	return errors.Join(errs...)
}

// removeCNIResults removes what libcni remembers of the network's pods, the
// loopback of the same pods included. Its folder can not be configured in
// containerd.
func removeCNIResults(network string) error {
	const dir = "/var/lib/cni/results/"
	files, _ := filepath.Glob(dir + network + "-*-eth0")
	var errs []error
	for _, f := range files {
		id := strings.TrimSuffix(strings.TrimPrefix(f, dir+network+"-"), "-eth0")
		errs = append(errs, removeIfThere(f), removeIfThere(dir+"cni-loopback-"+id+"-lo"))
	}
	return errors.Join(errs...)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func removeBridge(ctx context.Context, name string) error {
	if _, err := os.Stat("/sys/class/net/" + name); err != nil {
		return nil
	}
	_, err := command(ctx, "ip", "link", "del", name)
	return err
}
