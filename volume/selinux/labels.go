package selinux

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// Config says which volumes get labels.
type Config struct {
	Host Host
	// OneUser gives labels to volumes that one pod at a time may use
	// (ReadWriteOncePod); AllVolumes to the others, too. These are the gates
	// SELinuxMountReadWriteOncePod and SELinuxMount.
	OneUser, AllVolumes bool
	// Recorded lists the volumes that an earlier agent mounted; nil: none. It is
	// read once, before the first label.
	Recorded func() ([]volume.Recorded, error)
	// Outcome is told what came of each label, also of those that were not given for
	// want of AllVolumes; nil: nobody is. It must not block.
	Outcome func(Outcome)
}

// Outcome is what came of one label.
type Outcome struct {
	// Plugin is "kubernetes.io/csi/DRIVER", as these metrics name it; AccessMode is
	// short, such as "RWOP".
	Plugin, AccessMode string
	// Err is nil where the volume gets a label, a [*MismatchError] where containers
	// differ, a [*ConflictError] where other pods have another one.
	Err error
	// Refused says that the pod can not start for it.
	Refused bool
}

// ConflictError says that other pods of the node have the volume mounted with
// another label. It asks to try again: they may go.
type ConflictError struct{ Volume, Has, Needs string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflicting SELinux labels of volume %s: %q and %q", e.Volume, e.Has, e.Needs)
}

// RetryAfter says when to look whether the others are gone.
func (e *ConflictError) RetryAfter() time.Duration { return conflictRetry }

const conflictRetry = 5 * time.Second

// Labels is a [volume.Labels]. Use [New].
type Labels struct {
	cfg Config

	seeding sync.Mutex
	seeded  bool

	mu     sync.Mutex
	taken  map[string]*mounted // by what is mounted
	volume map[user]string     // what that is, by who has it
}

// mounted is one volume of the node.
type mounted struct {
	label string
	users map[user]struct{}
}

// user is one volume of a pod.
type user struct{ uid, name string }

var _ volume.Labels = (*Labels)(nil)

// New checks the configuration.
func New(cfg Config) (*Labels, error) {
	if cfg.AllVolumes && !cfg.OneUser {
		return nil, errors.New("selinux: AllVolumes needs OneUser")
	}
	return &Labels{cfg: cfg, taken: map[string]*mounted{}, volume: map[user]string{}}, nil
}

// Label implements [volume.Labels]. It never blocks.
func (l *Labels) Label(_ context.Context, req volume.LabelRequest) (string, error) {
	if !l.cfg.Host.Enabled || !l.cfg.OneUser || !req.SELinuxMount || req.Driver() == "" {
		return "", nil
	}
	if err := l.seed(); err != nil {
		return "", err
	}
	label, err := Wanted(l.cfg.Host.Files, req.Pod, req.Volume.Name)
	if recursive(req.Pod) {
		label, err = "", nil // each file gets the label of who starts last
	}
	refuses := l.cfg.AllVolumes || oneUser(req.Source)
	first := false
	if err == nil {
		first, err = l.take(req, label, refuses)
	}
	if err != nil || first && label != "" && refuses {
		l.tell(req, err, err != nil && refuses)
	}
	switch {
	case !refuses:
		return "", nil
	case err != nil:
		return "", reasoned.New("FailedMount", err).After(reasoned.RetryAfter(err, 0))
	}
	return label, nil
}

// take notes who has the volume with which label; first says that nobody had it.
func (l *Labels) take(req volume.LabelRequest, label string, refuses bool) (first bool, err error) {
	id := identity(string(req.Pod.UID), req.Source)
	me := user{string(req.Pod.UID), req.Volume.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	has := l.taken[id]
	if has != nil && has.label != label && has.others(me) {
		err = &ConflictError{req.Name(), has.label, label}
		if refuses {
			return false, err
		}
	}
	if has == nil || has.label != label && !has.others(me) {
		has = &mounted{label: label, users: map[user]struct{}{}}
		l.taken[id], first = has, true
	}
	has.users[me] = struct{}{}
	l.volume[me] = id
	return first, err
}

// others says whether anybody else has the volume.
func (m *mounted) others(me user) bool {
	_, mine := m.users[me]
	return len(m.users) > 1 || len(m.users) == 1 && !mine
}

// Release implements [volume.Labels].
func (l *Labels) Release(uid, volumeName string) {
	me := user{uid, volumeName}
	l.mu.Lock()
	defer l.mu.Unlock()
	id, known := l.volume[me]
	if !known {
		return
	}
	delete(l.volume, me)
	has := l.taken[id]
	delete(has.users, me)
	if len(has.users) == 0 {
		delete(l.taken, id)
	}
}

// seed takes in what an earlier agent mounted.
func (l *Labels) seed() error {
	l.seeding.Lock()
	defer l.seeding.Unlock()
	if l.seeded || l.cfg.Recorded == nil {
		return nil
	}
	list, err := l.cfg.Recorded()
	if err != nil {
		return fmt.Errorf("the labels of volumes that are mounted: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range list {
		if r.Driver() == "" {
			continue
		}
		id, who := identity(r.UID, r.Source), user{r.UID, r.Volume.Name}
		if l.volume[who] != "" {
			continue
		}
		if l.taken[id] == nil {
			l.taken[id] = &mounted{label: r.SELinuxLabel, users: map[user]struct{}{}}
		}
		l.taken[id].users[who] = struct{}{}
		l.volume[who] = id
	}
	l.seeded = true
	return nil
}

func (l *Labels) tell(req volume.LabelRequest, err error, refused bool) {
	if l.cfg.Outcome == nil {
		return
	}
	l.cfg.Outcome(Outcome{
		Plugin: req.Plugin + "/" + req.Driver(), AccessMode: accessMode(req.Source), Err: err, Refused: refused,
	})
}

// identity is what is mounted on the node: a driver's volume, which several pods
// may use, or one that is the pod's own.
func identity(uid string, s volume.Source) string {
	if s.PersistentVolume == nil {
		return uid + "/" + s.Volume.Name
	}
	return s.PersistentVolume.Spec.CSI.Driver + "^" + s.PersistentVolume.Spec.CSI.VolumeHandle
}

// oneUser says that only one pod at a time may use the volume.
func oneUser(s volume.Source) bool {
	pv := s.PersistentVolume
	return pv != nil && len(pv.Spec.AccessModes) == 1 && pv.Spec.AccessModes[0] == corev1.ReadWriteOncePod
}

// accessMode is how metrics name how a volume may be used: by its widest mode.
func accessMode(s volume.Source) string {
	if s.PersistentVolume == nil {
		return "inline"
	}
	for _, mode := range []struct {
		of    corev1.PersistentVolumeAccessMode
		short string
	}{{corev1.ReadWriteMany, "RWX"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteOnce, "RWO"}, {corev1.ReadWriteOncePod, "RWOP"}} {
		for _, has := range s.PersistentVolume.Spec.AccessModes {
			if has == mode.of {
				return mode.short
			}
		}
	}
	return ""
}
