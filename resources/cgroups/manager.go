package cgroups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/resources"
)

// Config says where pod cgroups stand and which limits they get.
type Config struct {
	// Mount is where the host's cgroups are mounted: the one hierarchy of
	// cgroup v2, or the directory that holds the hierarchies of v1.
	Mount    string
	Names    resources.CgroupNames
	CPUQuota resources.CPUQuota
	// PodPids is the most processes of one pod; 0: the kernel's own limit.
	PodPids int64
	// KillAfter is how long Remove lets processes leave by themselves before it
	// kills them; 0: not at all.
	KillAfter time.Duration
	// BusyWait is how long Remove waits in all until a cgroup is empty.
	BusyWait time.Duration
}

// Default is /sys/fs/cgroup, cgroupfs, CPU limits over 100 ms, no limit of
// processes, half a second for processes to leave, 10 s until they are gone.
func Default() Config {
	return Config{
		Mount:     "/sys/fs/cgroup",
		Names:     resources.CgroupNames{Driver: resources.Cgroupfs},
		CPUQuota:  resources.DefaultCPUQuota(),
		KillAfter: 500 * time.Millisecond,
		BusyWait:  10 * time.Second,
	}
}

// Validate names everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if !filepath.IsAbs(c.Mount) {
		errs = append(errs, fmt.Errorf("mount point %q: must be an absolute path", c.Mount))
	}
	if err := c.Names.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.PodPids < 0 || c.KillAfter < 0 || c.BusyWait < 0 {
		errs = append(errs, errors.New("field PodPids, KillAfter or BusyWait: must not be negative"))
	}
	return errors.Join(errs...)
}

// Manager makes and removes pod cgroups. Use New.
type Manager struct {
	cfg    Config
	slices Slices
	log    *slog.Logger

	mu     sync.Mutex
	warned map[string]bool // controllers already complained about
}

// New checks the configuration; it does no I/O. The systemd driver needs slices
// (package resources/cgroups/systemd has them); with cgroupfs they may be nil.
func New(cfg Config, slices Slices, log *slog.Logger) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	if cfg.Names.Driver != resources.Systemd {
		slices = nil
	} else if slices == nil {
		return nil, errors.New("cgroups: the cgroup driver systemd needs Slices, which are not given")
	}
	return &Manager{cfg: cfg, slices: slices, log: log, warned: map[string]bool{}}, nil
}

// Ensure makes the pod's cgroup in every hierarchy and sets its limits, also
// where it stood before.
func (m *Manager) Ensure(ctx context.Context, pod *corev1.Pod) error {
	if err := checkUID(string(pod.UID)); err != nil {
		return err
	}
	trees, err := hierarchies(m.cfg.Mount)
	if err != nil {
		return err
	}
	path := m.cfg.Names.Path(string(pod.UID), resources.QOSClass(pod))
	wanted := Wanted{Limits: resources.PodLimits(pod, m.cfg.CPUQuota), Pids: m.cfg.PodPids}
	if m.slices != nil {
		if err := m.slices.Ensure(ctx, filepath.Base(path), wanted, trees[0].unified); err != nil {
			return fmt.Errorf("cgroup %s: %w", path, err)
		}
	}
	for _, tree := range trees {
		if err := ctx.Err(); err != nil {
			return err
		}
		if tree.isSpare {
			continue
		}
		if err := m.ensureIn(tree, path, wanted); err != nil {
			return fmt.Errorf("cgroup %s: %w", path, err)
		}
	}
	return nil
}

func (m *Manager) ensureIn(tree hierarchy, path string, wanted Wanted) error {
	dir, err := m.mkdirs(tree, path)
	if err != nil {
		return m.tolerate(tree.name(), err)
	}
	for _, s := range tree.settings(dir, wanted) {
		if err := writeFile(filepath.Join(dir, s.file), s.value); err != nil {
			if err := m.tolerate(s.controller, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// mkdirs makes the cgroup and those above it, each ready for children.
func (m *Manager) mkdirs(tree hierarchy, path string) (string, error) {
	dir := tree.dir
	for name := range pathElements(path) {
		if err := m.openForChildren(tree, dir); err != nil {
			return "", err
		}
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if err := tree.prepare(dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// openForChildren hands the controllers of a cgroup on to its children (v2).
func (m *Manager) openForChildren(tree hierarchy, dir string) error {
	missing, err := tree.closedControllers(dir)
	if err != nil {
		return err
	}
	for _, controller := range missing {
		err := writeFile(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
		if errors.Is(err, syscall.EBUSY) {
			// A cgroup that holds processes itself, as the root does in a container.
			m.warn(controller, err)
			continue
		}
		if err != nil {
			if err := m.tolerate(controller, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// tolerate turns "there is no such thing here" and "not yours to write" into a
// warning.
func (m *Manager) tolerate(controller string, err error) error {
	for _, mild := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.EROFS} {
		if errors.Is(err, mild) {
			m.warn(controller, err)
			return nil
		}
	}
	return err
}

func (m *Manager) warn(controller string, err error) {
	m.mu.Lock()
	first := !m.warned[controller]
	m.warned[controller] = true
	m.mu.Unlock()
	if first {
		m.log.Warn("cgroup controller can not be used: pods have no limits of their own there", "controller", controller, "err", err)
	}
}

// checkUID keeps a UID from a manifest from naming a directory elsewhere.
func checkUID(uid string) error {
	if uid == "" || uid != filepath.Base(uid) || !filepath.IsLocal(uid) {
		return fmt.Errorf("pod UID %q can not name a cgroup", uid)
	}
	return nil
}
