// Package plane starts a Kubernetes control plane of one's own: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler of the pinned
// version (package install), with certificates made on the spot.
//
//	p, err := plane.Start(ctx, plane.Options{Dir: dir, Programs: programs})
//	if err != nil { ... }
//	defer p.Stop(ctx)
//	out, err := p.Kubectl(ctx, "get", "nodes")
//	kubeconfig, err := p.NodeKubeconfig("node-0")
//
// It is as kubeadm sets one up where a node can tell: Node and RBAC
// authorizers, NodeRestriction, bootstrap tokens, CSRs of nodes approved and
// signed. It does not run kube-proxy or DNS.
//
// # Rules for callers
//
// The folder is the caller's to remove, after Stop. Inside a testbed.Bed's
// folder, a killed run is also ended by the next bed that starts.
package plane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/integration/daemon"
)

// Options says what control plane to start.
type Options struct {
	Dir      string // is made; holds data, keys, kubeconfigs and logs
	Programs install.Programs
	// Address is where the API server is reached by nodes; default: 127.0.0.1.
	Address netip.Addr
	// SigningDuration is how long certificates of CSRs live; default: a day.
	SigningDuration time.Duration
	// VerifyKubelets makes the API server check the serving certificates of
	// kubelets, which must then have been signed by this control plane.
	VerifyKubelets bool
	// APIServerFlags are added to those of the API server.
	APIServerFlags []string
}

// Plane is a running control plane. Its methods are safe for concurrent use,
// but for those that start and end its parts.
type Plane struct {
	// Authority signs client and server certificates.
	Authority *Authority
	// Server is the API server's URL, and AdminKubeconfig a file that lets one
	// do everything there.
	Server          string
	AdminKubeconfig string

	options   Options
	address   netip.Addr
	etcd      *daemon.Daemon
	apiserver *daemon.Daemon
	managers  []*kept // controllers and scheduler
	ports     ports
}

// ports of the parts. An API server that starts again must keep its own.
type ports struct{ etcd, etcdPeer, apiserver, controllers, scheduler int }

// Start starts it and returns when pods can be created and scheduled.
func Start(ctx context.Context, o Options) (*Plane, error) {
	p, err := newPlane(o)
	if err != nil {
		return nil, fmt.Errorf("plane: %w", err)
	}
	if err := p.start(ctx); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("plane: %w", err), p.Stop(undo))
	}
	return p, nil
}

func newPlane(o Options) (*Plane, error) {
	if !o.Address.IsValid() {
		o.Address = netip.MustParseAddr("127.0.0.1")
	}
	if o.SigningDuration == 0 {
		o.SigningDuration = 24 * time.Hour
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	p := &Plane{options: o, address: o.Address, AdminKubeconfig: filepath.Join(o.Dir, "admin.kubeconfig")}
	for _, port := range []*int{&p.ports.etcd, &p.ports.etcdPeer, &p.ports.apiserver, &p.ports.controllers, &p.ports.scheduler} {
		var err error
		if *port, err = freePort(o.Address); err != nil {
			return nil, err
		}
	}
	p.Server = fmt.Sprintf("https://%s", netip.AddrPortFrom(o.Address, uint16(p.ports.apiserver)))
	return p, nil
}

func (p *Plane) start(ctx context.Context) error {
	if err := p.writeKeys(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{p.startEtcd, p.StartAPIServer, p.startManagers, p.setUp} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends all parts with SIGKILL: an API server takes over a minute to end
// by itself.
func (p *Plane) Stop(ctx context.Context) error {
	var errs []error
	for _, m := range p.managers {
		errs = append(errs, m.stop(ctx))
	}
	return errors.Join(append(errs, p.KillAPIServer(ctx), p.etcd.Kill(ctx))...)
}

// Dir is the folder of the control plane.
func (p *Plane) Dir() string { return p.options.Dir }

func (p *Plane) path(name string) string { return filepath.Join(p.options.Dir, name) }

// Log returns the last lines of a part's log, such as "kube-apiserver".
func (p *Plane) Log(part string, lines int) string { return daemon.Tail(p.path(part+".log"), lines) }
