package csidriver

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Config says what driver to be. Name, Dir, KubeletRoot and NodeID are required.
type Config struct {
	// Name is the driver's name, such as "disk.example".
	Name string
	// Dir is the driver's folder: sockets, volumes, the journal.
	Dir string
	// KubeletRoot is the agent's root directory, where the driver registers.
	KubeletRoot string
	// NodeID is what the driver calls the node.
	NodeID string
	// Topology is where volumes of this node are reached from; empty: anywhere.
	Topology map[string]string
	// MaxVolumes is how many volumes this node takes; 0: the driver does not say.
	MaxVolumes int64
	// Without takes capabilities away. All but MountGroup, Condition, Health and
	// SingleNodeMultiWriter are there by default.
	Without []Capability
	// With adds those that are not there by default.
	With []Capability
	// Secrets are what a call of that kind must bring.
	Secrets map[Op]map[string]string
	// PublishContext is what an attachment to this node says: stage and publish
	// must bring it along. Nil: anything is fine.
	PublishContext map[string]string
	// Versions are the versions that the driver registers with; default: 1.0.0.
	Versions []string
}

// Capability is one of the Node service.
type Capability int32

// What the Node service can be able to do. Condition was taken out of CSI
// after 1.12: it has its number on the wire, and no name in today's package.
const (
	StageUnstage          = Capability(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	VolumeStats           = Capability(csi.NodeServiceCapability_RPC_GET_VOLUME_STATS)
	ExpandVolume          = Capability(csi.NodeServiceCapability_RPC_EXPAND_VOLUME)
	Condition             = Capability(4)
	SingleNodeMultiWriter = Capability(csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	MountGroup            = Capability(csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	VolumeHealth          = Capability(csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH)
	StorageHealth         = Capability(csi.NodeServiceCapability_RPC_GET_STORAGE_HEALTH)
)

func (c Config) capabilities() map[Capability]bool {
	has := map[Capability]bool{StageUnstage: true, VolumeStats: true, ExpandVolume: true}
	for _, more := range c.With {
		has[more] = true
	}
	for _, less := range c.Without {
		delete(has, less)
	}
	return has
}

// Driver is a driver of one node. Use [New]. Its methods are safe for
// concurrent use, but for Start and Stop.
type Driver struct {
	cfg      Config
	has      map[Capability]bool
	journal  *journal
	ledger   *ledger
	control  *control
	volumes  *store
	told     *told
	sockets  []string
	servers  []*grpc.Server
	serving  sync.WaitGroup
	failures chan error

	mu         sync.Mutex
	maxVolumes int64
}

// New reads what an earlier driver left in the folder. It serves nothing yet.
func New(cfg Config) (*Driver, error) {
	if cfg.Name == "" || cfg.NodeID == "" || !filepath.IsAbs(cfg.Dir) || !filepath.IsAbs(cfg.KubeletRoot) {
		return nil, fmt.Errorf("csidriver: Name, NodeID and absolute Dir and KubeletRoot are needed, not %+v", cfg)
	}
	if len(cfg.Versions) == 0 {
		cfg.Versions = []string{"1.0.0"}
	}
	for _, dir := range []string{cfg.Dir, filepath.Join(cfg.Dir, "volumes"), filepath.Join(cfg.Dir, "inline")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	j, earlier, err := openJournal(filepath.Join(cfg.Dir, "journal"))
	if err != nil {
		return nil, fmt.Errorf("csidriver: %w", err)
	}
	d := &Driver{
		cfg: cfg, has: cfg.capabilities(), journal: j, control: newControl(), told: newTold(),
		volumes: &store{dir: cfg.Dir}, maxVolumes: cfg.MaxVolumes, failures: make(chan error, 2),
	}
	d.ledger = newLedger(d.has, cfg.Secrets, cfg.PublishContext)
	d.ledger.replay(earlier)
	return d, nil
}

// Start serves the driver and has it register. It returns when the agent can
// find it, which does not mean that it did: see [Driver.Registered].
func (d *Driver) Start() error {
	if err := d.serve(d.Endpoint(), func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, identity{driver: d})
		csi.RegisterNodeServer(s, nodeService{driver: d})
	}, grpc.UnaryInterceptor(d.intercept)); err != nil {
		return err
	}
	return d.serve(d.registrationSocket(), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, registrar{driver: d})
	})
}

// Stop ends the driver and takes its sockets away; calls that are under way get
// no answer. What is mounted stays. It can be started again.
func (d *Driver) Stop() error {
	var errs []error
	for _, socket := range d.sockets {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, server := range d.servers {
		server.Stop()
	}
	d.serving.Wait()
	d.servers, d.sockets = nil, nil
	d.told.forget()
	for {
		select {
		case err := <-d.failures:
			errs = append(errs, err)
		default:
			return errors.Join(errs...)
		}
	}
}

// Endpoint is the socket of the Node service.
func (d *Driver) Endpoint() string { return filepath.Join(d.cfg.Dir, "csi.sock") }

// Name is the driver's name.
func (d *Driver) Name() string { return d.cfg.Name }

func (d *Driver) registrationSocket() string {
	return filepath.Join(d.cfg.KubeletRoot, "plugins_registry", d.cfg.Name+"-reg.sock")
}

func (d *Driver) serve(socket string, register func(*grpc.Server), o ...grpc.ServerOption) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // of a driver that was killed
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("csidriver: %w", err)
	}
	server := grpc.NewServer(o...)
	register(server)
	d.servers, d.sockets = append(d.servers, server), append(d.sockets, socket)
	d.serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			d.failures <- fmt.Errorf("csidriver: serving %s: %w", socket, err)
		}
	})
	return nil
}

// SetMaxVolumes changes the limit that NodeGetInfo tells from now on.
func (d *Driver) SetMaxVolumes(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxVolumes = n
}

func (d *Driver) limit() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.maxVolumes
}

// capabilitiesSorted are in the order of their numbers.
func (d *Driver) capabilitiesSorted() []Capability { return slices.Sorted(maps.Keys(d.has)) }
