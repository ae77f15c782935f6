package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"nodekit.dev/resources"
)

// Source says where Read looks. Use Host for the machine itself.
type Source struct {
	// Root is the filesystem that /proc, /sys, /etc and /usr are read from.
	Root fs.FS
	// StorageSize is the size in bytes of the filesystem that holds the agent's
	// files; nil: not known.
	StorageSize func() (int64, error)
}

// Host is the machine itself; rootDir is the agent's root directory, which need
// not exist yet.
func Host(rootDir string) Source {
	return Source{Root: os.DirFS("/"), StorageSize: func() (int64, error) { return sizeOf(rootDir) }}
}

// Read reads the machine. It fails only for what a node can not do without: the
// memory, and a storage size that can be asked for but is not told.
func Read(src Source) (resources.Machine, error) {
	memory, swap, err := memoryOf(src.Root)
	if err != nil {
		return resources.Machine{}, fmt.Errorf("the machine's memory: %w", err)
	}
	pages, err := hugepagesOf(src.Root)
	if err != nil {
		return resources.Machine{}, fmt.Errorf("the machine's huge pages: %w", err)
	}
	out := resources.Machine{
		MachineID:     first(src.Root, "etc/machine-id", "var/lib/dbus/machine-id"),
		SystemUUID:    first(src.Root, "sys/class/dmi/id/product_uuid", "proc/device-tree/system-id", "proc/device-tree/vm,uuid", "etc/machine-id"),
		BootID:        first(src.Root, "proc/sys/kernel/random/boot_id"),
		KernelVersion: first(src.Root, "proc/sys/kernel/osrelease"),
		OSImage:       osImage(src.Root),
		CPUs:          cpusOf(src.Root),
		Memory:        memory,
		Swap:          swap,
		Hugepages:     pages,
		UserNamespace: inUserNamespace(first(src.Root, "proc/self/uid_map")),
	}
	if src.StorageSize != nil {
		if out.Storage, err = src.StorageSize(); err != nil {
			return resources.Machine{}, fmt.Errorf("the size of the agent's filesystem: %w", err)
		}
	}
	return out, nil
}

// first is the content of the first of the files that there is, without the
// space and the zero bytes (of a device tree) around it.
func first(root fs.FS, names ...string) string {
	for _, name := range names {
		if text, err := fs.ReadFile(root, name); err == nil {
			return strings.TrimSpace(strings.TrimRight(string(text), "\x00"))
		}
	}
	return ""
}

// cpusOf counts what is online; a kernel that does not tell leaves it to Go,
// which counts the CPUs that this process may use.
func cpusOf(root fs.FS) int {
	if n, err := resources.CPUs(first(root, "sys/devices/system/cpu/online")); err == nil && n > 0 {
		return n
	}
	return runtime.NumCPU()
}

func memoryOf(root fs.FS) (memory, swap int64, err error) {
	const name = "proc/meminfo"
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kib); err == nil {
			memory = kib << 10
		} else if _, err := fmt.Sscanf(line, "SwapTotal: %d kB", &kib); err == nil {
			swap = kib << 10
		}
	}
	if memory <= 0 {
		return 0, 0, fmt.Errorf("%s: no line MemTotal", name)
	}
	return memory, swap, nil
}

// hugepagesOf lists the sizes that the kernel has, smallest first in the names'
// order. A kernel without huge pages has none (k/k#106912).
func hugepagesOf(root fs.FS) ([]resources.Hugepages, error) {
	const dir = "sys/kernel/mm/hugepages"
	entries, err := fs.ReadDir(root, dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []resources.Hugepages
	for _, e := range entries {
		var kib int64
		if _, err := fmt.Sscanf(e.Name(), "hugepages-%dkB", &kib); err != nil {
			continue
		}
		file := path.Join(dir, e.Name(), "nr_hugepages")
		pages, err := strconv.ParseInt(first(root, file), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, resources.Hugepages{Size: kib << 10, Pages: pages})
	}
	return out, nil
}

// osImage is PRETTY_NAME of os-release(5).
func osImage(root fs.FS) string {
	text := first(root, "etc/os-release", "usr/lib/os-release")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	if text == "" {
		return "Unknown"
	}
	return "Linux"
}

// inUserNamespace reads /proc/self/uid_map: all of the 32 bit of user IDs, each
// as itself, is the namespace that the kernel started with.
func inUserNamespace(uidMap string) bool {
	fields := strings.Fields(uidMap)
	return len(fields) >= 3 && (fields[0] != "0" || fields[1] != "0" || fields[2] != "4294967295")
}
