package volume

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
)

// Config says where and how volumes are mounted.
type Config struct {
	// RootDir is the agent's root directory, absolute, such as /var/lib/kubelet.
	RootDir string
	// Width is how many volumes of one plugin (and, where it is known, of one NFS
	// server or CSI driver) are mounted or unmounted at the same time; one that
	// hangs thus holds up no other. 0 means 10.
	Width int
	// Claims finds what claims are bound to; nil: volumes that name a claim are
	// refused.
	Claims Claims
	// Labels says which SELinux label volumes are mounted with; nil: none.
	Labels Labels
	// Mounter makes bind mounts; nil means [HostMounter].
	Mounter Mounter
	// Observer sees operations as they end.
	Observer Observer
}

// Observer is told what the manager did, for metrics. Its functions may be
// nil; they must not block, and are called concurrently.
type Observer struct {
	// Done is called after each call of a plugin's Mount or Unmount.
	Done func(Operation)
	// RefreshFailed is called each time when the content of a pod's volumes
	// could not be brought up to date. The error reads and answers as that of
	// Mount does.
	RefreshFailed func(pod *corev1.Pod, err error)
	// OwnershipSlow is called, after half a minute and then each minute, while the
	// files of a volume are given to the pod's group, with what users are told
	// (the stock reason is VolumePermissionChangeInProgress).
	OwnershipSlow func(pod *corev1.Pod, message string)
}

// Operation is one finished call of a plugin.
type Operation struct {
	Kind   string // "mount", "refresh" or "unmount"
	Plugin string
	// Driver is the CSI driver's; empty: none, or not known any more.
	Driver string
	// Block says that it is a device.
	Block  bool
	UID    string
	Volume string
	Took   time.Duration
	// Whole is, of a mount that worked, the time since the pod first asked for it:
	// what waited, and what failed, included.
	Whole time.Duration
	Err   error
}

// Manager mounts and unmounts the volumes of pods. Use [New]. Safe for
// concurrent use. Its errors answer Reason ("FailedMount", "FailedUnMount",
// "CreateContainerConfigError"), RetryAfter and Fatal.
type Manager struct {
	layout   layout
	claims   Claims // may be nil
	labels   Labels // may be nil
	mounter  Mounter
	observer Observer
	plugins  []Plugin
	slots    *slots
	locks    locks
	upkeep   *upkeep
	ledger   ledger
	log      *slog.Logger
}

// The stock reasons for events.
const (
	reasonMount   = "FailedMount"
	reasonUnmount = "FailedUnMount"
	reasonConfig  = "CreateContainerConfigError"
)

// The kinds of an [Operation].
const (
	opMount   = "mount"
	opRefresh = "refresh"
	opUnmount = "unmount"
)

// mountedRetry is how soon to look again whether a mount in the way is gone.
const mountedRetry = 10 * time.Second

// New checks the configuration. The first plugin that supports a volume gets
// it, so a vendor's plugin that stands before a stock one takes its place.
func New(cfg Config, plugins []Plugin, log *slog.Logger) (*Manager, error) {
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, fmt.Errorf("volume: RootDir %q is not an absolute path", cfg.RootDir)
	}
	if cfg.Width < 0 {
		return nil, fmt.Errorf("volume: Width %d is negative", cfg.Width)
	}
	if cfg.Width == 0 {
		cfg.Width = 10
	}
	if cfg.Mounter == nil {
		cfg.Mounter = HostMounter{}
	}
	m := &Manager{
		layout:   layout{root: filepath.Clean(cfg.RootDir)},
		claims:   cfg.Claims,
		labels:   cfg.Labels,
		mounter:  cfg.Mounter,
		observer: cfg.Observer,
		plugins:  slices.Clone(plugins),
		slots:    &slots{width: cfg.Width, held: map[string]*slot{}},
		locks:    locks{held: map[volumeID]*lock{}},
		upkeep:   newUpkeep(),
		ledger:   ledger{asked: map[volumeID]time.Time{}, plugins: map[volumeID]string{}},
		log:      log,
	}
	names := map[string]bool{}
	for _, p := range m.plugins {
		if err := checkName("plugin", escape(p.Name())); err != nil {
			return nil, fmt.Errorf("volume: %w", err)
		}
		if names[p.Name()] {
			return nil, fmt.Errorf("volume: two plugins are named %q", p.Name())
		}
		names[p.Name()] = true
	}
	return m, nil
}

// Mount makes one volume of the pod usable and says where it is on the host.
// Idempotent. It blocks until the plugin is done, ctx at the latest.
func (m *Manager) Mount(ctx context.Context, pod *corev1.Pod, volumeName string) (string, error) {
	m.ledger.ask(volumeID{string(pod.UID), volumeName}, time.Now())
	s, plugin, err := m.resolve(ctx, pod, volumeName)
	if err != nil {
		return "", classed(reasonMount, mountError(volumeName, err))
	}
	uid := string(pod.UID)
	release, err := m.locks.takeFor(ctx, uid, s)
	if err != nil {
		return "", classed(reasonMount, mountError(volumeName, err))
	}
	defer release()
	if s.SELinuxLabel, err = m.label(ctx, pod, s, plugin); err == nil && namesClaim(s.Volume) {
		err = m.writeClaim(uid, plugin, s)
	}
	var result MountResult
	if err == nil {
		result, err = m.mountLocked(ctx, opMount, pod, s, plugin)
	}
	if err != nil {
		return "", classed(reasonMount, mountError(volumeName, err))
	}
	m.log.DebugContext(ctx, "volume mounted", "pod", pod.Namespace+"/"+pod.Name, "uid", uid,
		"volume", volumeName, "plugin", plugin.Name(), "path", result.HostPath)
	return result.HostPath, nil
}

func (m *Manager) plugin(name string) Plugin {
	for _, p := range m.plugins {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// operate runs a plugin's work in one of its slots and tells the observer.
func (m *Manager) operate(ctx context.Context, op Operation, s Source, work func() error) error {
	release, err := m.slots.take(ctx, op.Plugin+remote(s))
	if err != nil {
		return fmt.Errorf("waiting for other volumes of %s: %w", op.Plugin, err)
	}
	defer release()
	op.Driver, op.Block = s.Driver(), s.Block()
	start := time.Now()
	op.Err = work()
	op.Took = time.Since(start)
	if op.Kind != opUnmount && op.Err == nil {
		op.Whole = op.Took
		if since, asked := m.ledger.mounted(volumeID{op.UID, op.Volume}, op.PluginKind()); asked {
			op.Whole = time.Since(since)
		}
	}
	if m.observer.Done != nil {
		m.observer.Done(op)
	}
	return op.Err
}

// classed gives an error our reason and keeps what a plugin's error says
// about trying again.
func classed(reason string, err error) error {
	e := reasoned.New(reasoned.Reason(err, reason), err).After(reasoned.RetryAfter(err, 0))
	if reasoned.Fatal(err) {
		return e.Final()
	}
	return e
}
