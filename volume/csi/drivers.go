package csi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"

	"nodekit.dev/internal/reasoned"
)

// Registration is what a driver says of itself when it registers.
type Registration struct {
	Name string
	// Endpoint is the driver's socket.
	Endpoint string
	// Versions of CSI that it speaks.
	Versions []string
	// Socket is where it registered, which tells two registrations of one name
	// apart.
	Socket string
}

// Driver is a driver that is registered.
type Driver struct {
	Name     string
	Endpoint string
	// NodeID is what it calls this node.
	NodeID string
	// MaxVolumes is how many volumes the node may have; 0: it does not say.
	MaxVolumes int64
	// Topology is where the node is, by keys of its own.
	Topology     map[string]string
	Capabilities Capabilities
}

// Capabilities are what a driver can do on a node.
type Capabilities struct {
	Stage, Stats, Expand, SingleNodeMultiWriter, VolumeMountGroup bool
	VolumeHealth, StorageHealth                                   bool
	// VolumeCondition is of before CSI removed it.
	VolumeCondition bool
}

// driver is one registration.
type driver struct {
	Driver
	socket    string
	node      csipb.NodeClient
	slots     chan struct{}
	closeConn func() error

	mu    sync.Mutex
	calls int // in flight
	gone  bool
}

// drivers are those that are registered.
type drivers struct {
	mu      sync.Mutex
	byName  map[string][]*driver       // the newest last
	waiting map[string]map[string]bool // UIDs of pods, by the driver's name
	changed chan struct{}              // closed and replaced at each change
}

// driverRetry is how soon a pod looks again for a driver, should nothing wake it;
// unmountRetry is the same for one that ends, which nothing wakes.
const (
	driverRetry  = 30 * time.Second
	unmountRetry = 5 * time.Second
)

// notRegistered is the stock kubelet's text.
func notRegistered(name string) error {
	return reasoned.New(reasonMount, &DriverNotFoundError{name}).After(driverRetry)
}

// DriverNotFoundError says that no driver of that name is registered.
type DriverNotFoundError struct{ Driver string }

func (e *DriverNotFoundError) Error() string {
	return fmt.Sprintf("driver name %s not found in the list of registered CSI drivers", e.Driver)
}

// driver finds one. Where it is missing, the pod of that UID (empty: none) is
// woken when it comes.
func (p *Plugin) driver(name, uid string) (*driver, error) {
	d := &p.drivers
	d.mu.Lock()
	defer d.mu.Unlock()
	if list := d.byName[name]; len(list) > 0 {
		return list[len(list)-1], nil
	}
	if uid != "" {
		if d.waiting[name] == nil {
			d.waiting[name] = map[string]bool{}
		}
		d.waiting[name][uid] = true
	}
	return nil, notRegistered(name)
}

// Register takes in a driver, after it was asked who it is and what it can do.
// It blocks until it answered, ctx at the latest. A driver may register again.
func (p *Plugin) Register(ctx context.Context, r Registration) error {
	if err := checkRegistration(r); err != nil {
		return err
	}
	conn, closeConn, err := p.parts.Connect.Connect(r.Name, r.Endpoint)
	if err != nil {
		return fmt.Errorf("CSI driver %s: %w", r.Name, err)
	}
	d := &driver{
		Driver: Driver{Name: r.Name, Endpoint: r.Endpoint}, socket: r.Socket,
		node: csipb.NewNodeClient(conn), slots: make(chan struct{}, p.cfg.Width), closeConn: closeConn,
	}
	if err := p.introduce(ctx, d); err != nil {
		return errors.Join(fmt.Errorf("CSI driver %s: %w", r.Name, err), closeConn())
	}
	p.add(d)
	return nil
}

func checkRegistration(r Registration) error {
	if r.Name == "" || strings.ContainsAny(r.Name, "/\x00") || r.Name == devicesDir || r.Name == "pv" || r.Name == "." || r.Name == ".." {
		return fmt.Errorf("CSI driver %q: the name can not be a driver's", r.Name)
	}
	if !slices.ContainsFunc(r.Versions, func(v string) bool {
		v = strings.TrimPrefix(v, "v")
		return v == "1" || strings.HasPrefix(v, "1.")
	}) {
		return fmt.Errorf("CSI driver %s: none of the versions %q is one of CSI 1", r.Name, r.Versions)
	}
	return nil
}

// introduce asks a driver who it is and what it can do.
func (p *Plugin) introduce(ctx context.Context, d *driver) error {
	var info *csipb.NodeGetInfoResponse
	err := p.call(ctx, d, "NodeGetInfo", func(ctx context.Context) (err error) {
		info, err = d.node.NodeGetInfo(ctx, &csipb.NodeGetInfoRequest{})
		return err
	})
	if err != nil {
		return err
	}
	if info.GetNodeId() == "" {
		return errors.New("NodeGetInfo gave no node ID")
	}
	d.NodeID, d.MaxVolumes = info.GetNodeId(), max(0, info.GetMaxVolumesPerNode())
	d.Topology = maps.Clone(info.GetAccessibleTopology().GetSegments())
	return p.call(ctx, d, "NodeGetCapabilities", func(ctx context.Context) error {
		answer, err := d.node.NodeGetCapabilities(ctx, &csipb.NodeGetCapabilitiesRequest{})
		d.Capabilities = capabilities(answer)
		return err
	})
}

// Refresh asks a registered driver again how many volumes the node may have, and
// where it is. It blocks as Register does.
func (p *Plugin) Refresh(ctx context.Context, name string) error {
	old, err := p.driver(name, "")
	if err != nil {
		return err
	}
	fresh := &driver{Driver: old.Driver, node: old.node, slots: old.slots}
	if err := p.introduce(ctx, fresh); err != nil {
		return fmt.Errorf("CSI driver %s: %w", name, err)
	}
	p.drivers.mu.Lock()
	defer p.drivers.mu.Unlock()
	if fresh.MaxVolumes != old.MaxVolumes || !maps.Equal(fresh.Topology, old.Topology) || fresh.NodeID != old.NodeID {
		old.MaxVolumes, old.Topology, old.NodeID = fresh.MaxVolumes, fresh.Topology, fresh.NodeID
		p.drivers.tell()
	}
	return nil
}

// capability 4 was VOLUME_CONDITION.
const volumeConditionCapability = csipb.NodeServiceCapability_RPC_Type(4)

func capabilities(answer *csipb.NodeGetCapabilitiesResponse) (c Capabilities) {
	for _, one := range answer.GetCapabilities() {
		switch one.GetRpc().GetType() {
		case csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME:
			c.Stage = true
		case csipb.NodeServiceCapability_RPC_GET_VOLUME_STATS:
			c.Stats = true
		case csipb.NodeServiceCapability_RPC_EXPAND_VOLUME:
			c.Expand = true
		case csipb.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER:
			c.SingleNodeMultiWriter = true
		case csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP:
			c.VolumeMountGroup = true
		case csipb.NodeServiceCapability_RPC_GET_VOLUME_HEALTH:
			c.VolumeHealth = true
		case csipb.NodeServiceCapability_RPC_GET_STORAGE_HEALTH:
			c.StorageHealth = true
		case volumeConditionCapability:
			c.VolumeCondition = true
		case csipb.NodeServiceCapability_RPC_UNKNOWN:
		}
	}
	return c
}

// add makes the driver the one of its name, and wakes who waited for it.
func (p *Plugin) add(d *driver) {
	p.drivers.mu.Lock()
	list, same := p.drivers.byName[d.Name], -1
	for i, other := range list {
		if other.socket == d.socket {
			same = i
		}
	}
	if same >= 0 {
		list[same].retire()
		list = slices.Delete(list, same, same+1)
	}
	p.drivers.byName[d.Name] = append(list, d)
	waiting := slices.Sorted(maps.Keys(p.drivers.waiting[d.Name]))
	delete(p.drivers.waiting, d.Name)
	p.drivers.tell()
	p.drivers.mu.Unlock()
	p.undone.retry(d.Name)
	for _, uid := range waiting {
		p.parts.Wake(uid)
	}
}

// Unregister forgets a registration. Calls in flight go on.
func (p *Plugin) Unregister(r Registration) {
	p.drivers.mu.Lock()
	defer p.drivers.mu.Unlock()
	list := p.drivers.byName[r.Name]
	for i, d := range list {
		if d.socket != r.Socket {
			continue
		}
		d.retire()
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(p.drivers.byName, r.Name)
		} else {
			p.drivers.byName[r.Name] = list
		}
		p.drivers.tell()
		return
	}
}

// tell is called with the mutex.
func (d *drivers) tell() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Registered are the drivers, by name.
func (p *Plugin) Registered() (all []Driver) {
	p.drivers.mu.Lock()
	defer p.drivers.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.drivers.byName)) {
		list := p.drivers.byName[name]
		all = append(all, list[len(list)-1].Driver)
	}
	return all
}

// Changed is closed at the next change of what Registered tells.
func (p *Plugin) Changed() <-chan struct{} {
	p.drivers.mu.Lock()
	defer p.drivers.mu.Unlock()
	return p.drivers.changed
}

// retire closes the connection once no call is in flight.
func (d *driver) retire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	d.closeIdle()
}

func (d *driver) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
}

func (d *driver) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
	d.closeIdle()
}

// closeIdle is called with the mutex. That closing fails means nothing: nobody
// uses the connection any more.
func (d *driver) closeIdle() {
	if d.gone && d.calls == 0 && d.closeConn != nil {
		_ = d.closeConn()
		d.closeConn = nil
	}
}
