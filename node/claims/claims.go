package claims

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
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
	// Recorded lists the volumes that this agent or one before it mounted;
	// nil: none. volume.Manager has it.
	Recorded func(ctx context.Context) ([]volume.Recorded, error)
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
	inUse  map[corev1.UniqueVolumeName]map[types.UID]bool
	known  bool          // the recorded ones are in inUse
	change chan struct{} // closed and replaced when the Node object changed
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
		cfg: cfg, parts: parts, known: parts.Recorded == nil,
		inUse: map[corev1.UniqueVolumeName]map[types.UID]bool{}, change: make(chan struct{}),
	}, nil
}

// Run reads which volumes an earlier agent left mounted, again until it can,
// and then waits for ctx to end.
func (c *Claims) Run(ctx context.Context) error {
	var failures backoff.State
	for c.parts.Recorded != nil {
		recorded, err := c.parts.Recorded(ctx)
		if err == nil {
			c.remember(recorded)
			c.parts.Kick()
			break
		}
		failures = failures.Fail(backoff.Policy{Base: time.Second, Max: time.Minute}, time.Now(), err.Error())
		c.parts.Log.Warn("can not read which volumes are mounted; what is in use is not told until then", "retryIn", failures.Delay, "err", err)
		if err := tasks.Pause(ctx, failures.Delay); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (c *Claims) remember(recorded []volume.Recorded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range recorded {
		if r.Attached {
			c.use(uniqueName(r.PersistentVolume), types.UID(r.UID))
		}
	}
	c.known = true
}

// use notes that a pod uses a volume. The lock is held.
func (c *Claims) use(name corev1.UniqueVolumeName, uid types.UID) (first bool) {
	if c.inUse[name] == nil {
		c.inUse[name] = map[types.UID]bool{}
	}
	first = len(c.inUse[name]) == 0
	c.inUse[name][uid] = true
	return first
}

// InUse lists the volumes that must not be detached, sorted, for
// node.status.volumesInUse. known is false until Run has read what an earlier
// agent mounted.
func (c *Claims) InUse() (volumes []corev1.UniqueVolumeName, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.inUse {
		volumes = append(volumes, name)
	}
	slices.Sort(volumes)
	return volumes, c.known
}

// Release says that nothing of the pod is left on the node. Unknown UIDs are
// fine.
func (c *Claims) Release(uid types.UID) {
	c.mu.Lock()
	free := false
	for name, pods := range c.inUse {
		delete(pods, uid)
		if len(pods) == 0 {
			delete(c.inUse, name)
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
