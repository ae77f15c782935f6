package claims

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/volume"
)

// Config says for whom.
type Config struct {
	// NodeName is the name of this node. Required.
	NodeName string
}

// Parts is what the claims are read from.
type Parts struct {
	// Core is v1. Required.
	Core rest.Interface
	// Storage is storage.k8s.io/v1, for CSIDrivers and VolumeAttachments; nil:
	// no volume has to be attached.
	Storage rest.Interface
	// Node is the Node object as last seen; it may block until it was seen
	// first. Required.
	Node func(ctx context.Context) (*corev1.Node, error)
	// Recorded lists the volumes that this agent or one before it mounted; nil:
	// none. volume.Manager has it. It is asked by each InUse.
	Recorded func() ([]volume.Recorded, error)
	// Exhausted is told of a driver that could attach no more volumes to the node
	// (VolumeAttachment's attachError). It must not block; nil: nobody is.
	Exhausted func(driver string)
	// Kick has the status of the node told now; nil: it is told in its time.
	Kick func()
	// Log is nil for no logs.
	Log *slog.Logger
}

// Claims is a volume.Claims. Use [New]. Safe for concurrent use.
type Claims struct {
	cfg   Config
	parts Parts

	mu     sync.Mutex
	wanted map[corev1.UniqueVolumeName]map[types.UID]bool // by pods of this run
	ailing bool                                           // the log has it that records can not be read
	change chan struct{}                                  // closed and replaced when the Node object changed
}

// New checks and allocates.
func New(cfg Config, parts Parts) (*Claims, error) {
	switch {
	case cfg.NodeName == "":
		return nil, errors.New("claims: NodeName must not be empty")
	case parts.Core == nil:
		return nil, errors.New("claims: parts: Core is missing: it is the REST client of the API group v1")
	case parts.Node == nil:
		return nil, errors.New("claims: parts: Node is missing: package node/objects/apicache has it")
	}
	if parts.Kick == nil {
		parts.Kick = func() {}
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	return &Claims{
		cfg: cfg, parts: parts,
		wanted: map[corev1.UniqueVolumeName]map[types.UID]bool{}, change: make(chan struct{}),
	}, nil
}

// use notes that a pod uses a volume, and says whether it is the first to.
func (c *Claims) use(name corev1.UniqueVolumeName, uid types.UID) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted[name] == nil {
		c.wanted[name] = map[types.UID]bool{}
	}
	first = len(c.wanted[name]) == 0
	c.wanted[name][uid] = true
	return first
}

// InUse lists the volumes that must not be detached, sorted, for
// node.status.volumesInUse: those that pods wait for or use, and those that an
// earlier agent mounted. known is false while nobody can tell the latter.
func (c *Claims) InUse() (volumes []corev1.UniqueVolumeName, known bool) {
	recorded, err := c.recorded()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.ailing {
		c.parts.Log.Warn("can not read which volumes are mounted; what is in use stays as it was told last", "err", err)
	}
	c.ailing = err != nil
	for name := range c.wanted {
		volumes = append(volumes, name)
	}
	for _, r := range recorded {
		if r.Attached {
			volumes = append(volumes, uniqueName(r.PersistentVolume))
		}
	}
	slices.Sort(volumes)
	return slices.Compact(volumes), err == nil
}

func (c *Claims) recorded() ([]volume.Recorded, error) {
	if c.parts.Recorded == nil {
		return nil, nil
	}
	return c.parts.Recorded()
}

// Release says that nothing of the pod is left on the node. Unknown UIDs are
// fine.
func (c *Claims) Release(uid types.UID) {
	c.mu.Lock()
	free := false
	for name, pods := range c.wanted {
		delete(pods, uid)
		if len(pods) == 0 {
			delete(c.wanted, name)
			free = true
		}
	}
	c.mu.Unlock()
	if free {
		c.parts.Kick()
	}
}

// NodeChanged says that the Node object changed: who waits for an attach looks
// again. It never blocks.
func (c *Claims) NodeChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.change)
	c.change = make(chan struct{})
}

func (c *Claims) changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.change
}

// uniqueName is what the attach-detach controller calls an attachable volume.
func uniqueName(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	if pv == nil || pv.Spec.CSI == nil {
		return ""
	}
	return corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/csi/%s^%s", pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle))
}
