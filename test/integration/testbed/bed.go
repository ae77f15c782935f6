package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/daemon"
)

// Options says what bed to start. The zero value is containerd 2, and no log.
type Options struct {
	Version string // V2 (default) or V16
	// Apart gives the bed a network namespace of its own.
	Apart bool
	Log   *slog.Logger // default: nothing is logged
}

// Bed is a running containerd of one's own with all around it. The exported
// fields do not change. Its methods are called from one goroutine, but for CRI
// and Registry, which any may use.
type Bed struct {
	Version string
	// Dir is the bed's folder, gone after Stop. Agents may keep their root in it.
	Dir string
	// Socket is the path of the CRI socket; it stays the same when containerd
	// is started again.
	Socket string
	Bridge string
	Subnet netip.Prefix
	NodeIP netip.Addr
	// MachineIP is this machine's address as the bed sees it, and Namespace the
	// network namespace of the bed. Without Options.Apart they are NodeIP and empty.
	MachineIP netip.Addr
	Namespace string
	// PodLogs is where the agent should put pod logs, instead of /var/log/pods.
	PodLogs string
	// LogLinks is where the agent then puts links to container logs, instead of
	// /var/log/containers.
	LogLinks string
	// CgroupRoot is the cgroup that the agent should work below, such as "/nkbed0".
	CgroupRoot string
	// Registry serves the images of this bed.
	Registry *Registry

	slot       *slot
	containerd *daemon.Daemon
	cri        *criClient
	log        *slog.Logger
}

// Start takes a slot, cleans it, and starts containerd and a registry there.
// It returns when the runtime and its network are ready and the pause image
// is present. Start does not install anything; see Install.
func Start(ctx context.Context, o Options) (*Bed, error) {
	b, err := newBed(o)
	if err != nil {
		return nil, err
	}
	if err := b.start(ctx); err != nil {
		// What was started must go even when ctx is what ended the start.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("testbed: containerd %s: %w", b.Version, err), b.Stop(undo))
	}
	return b, nil
}

func newBed(o Options) (*Bed, error) {
	if o.Version == "" {
		o.Version = V2
	}
	if o.Version != V2 && o.Version != V16 {
		return nil, fmt.Errorf("testbed: no containerd %q, only %q and %q", o.Version, V2, V16)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := takeSlot()
	if err != nil {
		return nil, fmt.Errorf("testbed: %w", err)
	}
	b := &Bed{
		Version:    o.Version,
		Dir:        s.dir,
		Socket:     s.path("containerd.sock"),
		Bridge:     s.name(),
		Subnet:     s.subnet(),
		NodeIP:     s.bridgeIP(),
		MachineIP:  s.bridgeIP(),
		PodLogs:    s.path("log", "pods"),
		LogLinks:   s.path("log", "containers"),
		CgroupRoot: "/" + s.name(),
		slot:       s,
		log:        o.Log.With("bed", s.number, "containerd", o.Version),
	}
	if o.Apart {
		b.Namespace, b.MachineIP = s.name(), s.cable().Addr().Next()
		b.NodeIP = b.MachineIP.Next()
	}
	return b, nil
}

func (b *Bed) start(ctx context.Context) error {
	if err := sweep(ctx, b.slot); err != nil {
		return fmt.Errorf("clean up after an earlier run: %w", err)
	}
	if err := sweepAbandoned(ctx); err != nil {
		return fmt.Errorf("clean up after other runs: %w", err)
	}
	for _, dir := range []string{b.Dir, b.PodLogs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if b.Namespace != "" {
		if err := b.makeNamespace(ctx); err != nil {
			return err
		}
	}
	if err := b.makeBridge(ctx); err != nil {
		return err
	}
	if err := b.startRegistry(ctx); err != nil {
		return err
	}
	if err := makeCgroup(b.CgroupRoot); err != nil {
		return err
	}
	if err := b.writeConfig(); err != nil {
		return err
	}
	if err := b.StartRuntime(ctx); err != nil {
		return err
	}
	return b.Pull(ctx, PauseImage)
}

func (b *Bed) startRegistry(ctx context.Context) (err error) {
	if b.Registry, err = newRegistry(b.MachineIP); err != nil {
		return err
	}
	images, err := StandardImages(ctx)
	if err != nil {
		return err
	}
	for ref, img := range images {
		if err := b.Registry.Push(ctx, ref, img); err != nil {
			return err
		}
	}
	return nil
}

// makeBridge makes the bridge before the first pod needs it, so that NodeIP is
// an address of this machine from the start, as an agent demands.
func (b *Bed) makeBridge(ctx context.Context) error {
	addr := netip.PrefixFrom(b.slot.bridgeIP(), b.Subnet.Bits()).String()
	for _, args := range [][]string{
		{"link", "add", b.Bridge, "type", "bridge"},
		{"addr", "add", addr, "dev", b.Bridge},
		{"link", "set", b.Bridge, "up"},
	} {
		if _, err := run(b.Command(ctx, "ip", args...)); err != nil {
			return err
		}
	}
	return nil
}

// Endpoint is Socket as the address that agents take.
func (b *Bed) Endpoint() string { return "unix://" + b.Socket }

// CRI speaks to the runtime behind the agent's back. It reconnects by itself
// when the runtime was started again.
func (b *Bed) CRI() runtimeapi.RuntimeServiceClient { return b.cri.runtime }

// Images is the image service of the same runtime.
func (b *Bed) Images() runtimeapi.ImageServiceClient { return b.cri.images }

// Pull pulls an image of the bed's registry into the runtime.
func (b *Bed) Pull(ctx context.Context, ref string) error {
	_, err := b.cri.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	return nil
}

// Stop ends containerd and removes everything that ran or lay in the bed:
// containers, mounts, network, cgroups, folder. Stop the agent first.
func (b *Bed) Stop(ctx context.Context) error {
	var errs []error
	if b.cri != nil {
		errs = append(errs, b.cri.close())
	}
	errs = append(errs, b.KillRuntime(ctx), sweep(ctx, b.slot))
	if b.Registry != nil {
		errs = append(errs, b.Registry.Close())
	}
	return errors.Join(append(errs, b.slot.release())...)
}
