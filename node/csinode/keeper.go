package csinode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
)

// Config says for whom.
type Config struct {
	// NodeName is the name of this node. Required.
	NodeName string
	// NoRefresh leaves the limits as the drivers said at first (gate
	// MutableCSINodeAllocatableCount is off).
	NoRefresh bool
}

// Driver is a CSI driver of this node.
type Driver struct {
	Name, NodeID string
	// MaxVolumes is 0 where it does not say.
	MaxVolumes int64
	Topology   map[string]string
}

// Drivers are the drivers of this node. Safe for concurrent use.
type Drivers interface {
	// Registered lists them; it does not block.
	Registered() []Driver
	// Changed is closed at the next change of that list.
	Changed() <-chan struct{}
	// Refresh asks one again; it may block until ctx ends.
	Refresh(ctx context.Context, driver string) error
}

// Parts is what the keeper calls. All but Objects and Log are required.
type Parts struct {
	// Core is v1, Storage is storage.k8s.io/v1.
	Core, Storage rest.Interface
	// Node is the node as last known; its UID is empty until it is registered.
	Node    func() *corev1.Node
	Drivers Drivers
	// Objects are the CSIDriver objects; nil: no driver is asked again.
	Objects *Objects
	// Log is nil for no logs.
	Log *slog.Logger
}

// Keeper keeps the objects. Use New.
type Keeper struct {
	cfg       Config
	parts     Parts
	exhausted chan string

	// What follows is Run's own.
	seen map[string]bool // drivers that registered since the start
	gone map[string]bool // of those, the ones that are to be taken out
	due  map[string]time.Time
}

// New checks and allocates.
func New(cfg Config, parts Parts) (*Keeper, error) {
	switch {
	case cfg.NodeName == "":
		return nil, errors.New("csinode: NodeName must not be empty")
	case parts.Core == nil, parts.Storage == nil, parts.Node == nil, parts.Drivers == nil:
		return nil, errors.New("csinode: parts: Core, Storage, Node and Drivers must be there")
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{
		cfg: cfg, parts: parts, exhausted: make(chan string, 16),
		seen: map[string]bool{}, gone: map[string]bool{}, due: map[string]time.Time{},
	}, nil
}

// Exhausted says that a driver had no room for one more volume on this node: it
// is asked again how many there may be. It never blocks.
func (k *Keeper) Exhausted(driver string) {
	select {
	case k.exhausted <- driver:
	default: // many are being asked already
	}
}

func retry() backoff.Policy {
	return backoff.Policy{Base: 500 * time.Millisecond, Max: 30 * time.Second}
}

// Run keeps the objects until ctx ends, and returns its error.
func (k *Keeper) Run(ctx context.Context) error {
	var fails backoff.State
	for {
		changed := k.parts.Drivers.Changed() // before looking, so that no change is missed
		wait := time.Duration(0)
		if err := k.tell(ctx); err != nil && ctx.Err() == nil {
			note := fails.Note
			fails = fails.Fail(retry(), time.Now(), err.Error())
			wait = fails.Delay
			if note != fails.Note {
				k.parts.Log.WarnContext(ctx, "the cluster can not be told of the CSI drivers of this node", "retryIn", wait, "err", err)
			}
		} else {
			fails = backoff.State{}
		}
		if err := k.wait(ctx, changed, wait); err != nil {
			return err
		}
	}
}

// wait returns when there is something to tell, or to try again. Meanwhile
// drivers are asked again when their time comes.
func (k *Keeper) wait(ctx context.Context, changed <-chan struct{}, retryIn time.Duration) error {
	var again <-chan time.Time
	if retryIn > 0 {
		again = time.After(retryIn)
	}
	for {
		var due <-chan time.Time
		name, at := k.nextDue()
		if name != "" {
			due = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			return nil
		case <-again:
			return nil
		case driver := <-k.exhausted:
			k.refresh(ctx, driver)
		case <-due:
			k.refresh(ctx, name)
			k.schedule(ctx, name)
		}
	}
}

// refreshTime bounds one question to a driver.
const refreshTime = 30 * time.Second

func (k *Keeper) refresh(ctx context.Context, driver string) {
	if k.cfg.NoRefresh || !k.seen[driver] {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	if err := k.parts.Drivers.Refresh(ctx, driver); err != nil && ctx.Err() == nil {
		k.parts.Log.WarnContext(ctx, "a CSI driver does not say how many volumes the node may have", "driver", driver, "err", err)
	}
}

func (k *Keeper) nextDue() (name string, at time.Time) {
	for driver, when := range k.due {
		if name == "" || when.Before(at) || when.Equal(at) && driver < name {
			name, at = driver, when
		}
	}
	return name, at
}

// objectRetry is how soon to look again for a CSIDriver object that may get a
// period later, or that could not be read.
const objectRetry = 10 * time.Minute

// schedule sets when to ask a driver again.
func (k *Keeper) schedule(ctx context.Context, driver string) {
	if k.cfg.NoRefresh || k.parts.Objects == nil {
		return
	}
	wait := objectRetry
	object, err := k.parts.Objects.CSIDriver(ctx, driver)
	if err == nil && object.Spec.NodeAllocatableUpdatePeriodSeconds != nil {
		wait = max(10*time.Second, time.Duration(*object.Spec.NodeAllocatableUpdatePeriodSeconds)*time.Second)
	}
	k.due[driver] = time.Now().Add(wait)
}

// tell brings the objects up to date.
func (k *Keeper) tell(ctx context.Context) error {
	drivers := k.parts.Drivers.Registered()
	now := map[string]bool{}
	for _, d := range drivers {
		now[d.Name] = true
		delete(k.gone, d.Name)
		if !k.seen[d.Name] {
			k.seen[d.Name] = true
			k.schedule(ctx, d.Name)
		}
	}
	for name := range k.seen {
		if !now[name] {
			k.gone[name] = true
			delete(k.seen, name)
			delete(k.due, name)
		}
	}
	if len(drivers) == 0 && len(k.gone) == 0 {
		return nil
	}
	node := k.parts.Node()
	if node == nil || node.UID == "" {
		return errors.New("the Node is not registered yet")
	}
	drivers, collided, err := k.tellNode(ctx, drivers)
	if err != nil {
		return err
	}
	if err := k.tellCSINode(ctx, node, drivers); err != nil {
		return err
	}
	clear(k.gone)
	return collided
}

// nodeIDs is the annotation of the Node that names it to its drivers.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// tellNode patches the Node, and drops the drivers whose topology contradicts
// its labels.
func (k *Keeper) tellNode(ctx context.Context, drivers []Driver) (good []Driver, collided, err error) {
	node := &corev1.Node{}
	if err := k.parts.Core.Get().Resource("nodes").Name(k.cfg.NodeName).Do(ctx).Into(node); err != nil {
		return nil, nil, fmt.Errorf("node %s: %w", k.cfg.NodeName, err)
	}
	labels, ids := map[string]string{}, map[string]string{}
	if text := node.Annotations[nodeIDs]; text != "" {
		if err := json.Unmarshal([]byte(text), &ids); err != nil {
			ids = map[string]string{} // somebody broke it
		}
	}
	for name := range k.gone {
		delete(ids, name)
	}
	for _, d := range drivers {
		if err := collides(d, node.Labels, labels); err != nil {
			collided = errors.Join(collided, err)
			continue
		}
		maps.Copy(labels, d.Topology)
		ids[d.Name] = d.NodeID
		good = append(good, d)
	}
	patch, changed, err := nodePatch(node, labels, ids)
	if err != nil || !changed {
		return good, collided, err
	}
	err = k.parts.Core.Patch(types.MergePatchType).Resource("nodes").Name(k.cfg.NodeName).SubResource("status").Body(patch).Do(ctx).Error()
	if err != nil {
		return nil, nil, fmt.Errorf("labels and annotation of node %s: %w", k.cfg.NodeName, err)
	}
	return good, collided, nil
}

// collides says that a label has another value already, in the stock words.
func collides(d Driver, known ...map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(d.Topology)) {
		for _, labels := range known {
			if old, ok := labels[key]; ok && old != d.Topology[key] {
				return fmt.Errorf("CSI driver %s: detected topology value collision: driver reported %q:%q but existing label is %q:%q",
					d.Name, key, d.Topology[key], key, old)
			}
		}
	}
	return nil
}

// nodePatch is the merge patch of a Node.
func nodePatch(node *corev1.Node, labels, ids map[string]string) (patch []byte, changed bool, err error) {
	metadata := map[string]any{}
	missing := map[string]string{}
	for key, value := range labels {
		if node.Labels[key] != value {
			missing[key] = value
		}
	}
	if len(missing) > 0 {
		metadata["labels"] = missing
	}
	text, err := json.Marshal(ids) // keys are sorted
	if err != nil {
		return nil, false, err
	}
	switch old, ok := node.Annotations[nodeIDs]; {
	case len(ids) == 0 && ok:
		metadata["annotations"] = map[string]any{nodeIDs: nil}
	case len(ids) > 0 && old != string(text):
		metadata["annotations"] = map[string]any{nodeIDs: string(text)}
	}
	if len(metadata) == 0 {
		return nil, false, nil
	}
	patch, err = json.Marshal(map[string]any{"metadata": metadata})
	return patch, true, err
}

// tries is how often an object is read anew that somebody else has changed.
const tries = 5

// tellCSINode makes or updates the CSINode.
func (k *Keeper) tellCSINode(ctx context.Context, node *corev1.Node, drivers []Driver) (err error) {
	for range tries {
		if err = k.writeCSINode(ctx, node, drivers); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
		if tasks.Pause(ctx, 50*time.Millisecond) != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("CSINode %s: %w", k.cfg.NodeName, err)
	}
	return nil
}

func (k *Keeper) writeCSINode(ctx context.Context, node *corev1.Node, drivers []Driver) error {
	old := &storagev1.CSINode{}
	err := k.parts.Storage.Get().Resource("csinodes").Name(k.cfg.NodeName).Do(ctx).Into(old)
	if apierrors.IsNotFound(err) {
		fresh := newCSINode(node)
		fresh.Spec.Drivers = merged(nil, drivers, k.gone)
		return k.parts.Storage.Post().Resource("csinodes").Body(fresh).Do(ctx).Error()
	}
	if err != nil {
		return err
	}
	next := merged(old.Spec.Drivers, drivers, k.gone)
	if sameDrivers(old.Spec.Drivers, next) {
		return nil
	}
	old.Spec.Drivers = next
	return k.parts.Storage.Put().Resource("csinodes").Name(k.cfg.NodeName).Body(old).Do(ctx).Error()
}
