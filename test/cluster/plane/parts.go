package plane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"nodekit.dev/test/integration/daemon"
	"nodekit.dev/test/integration/testbed"
)

// startTimeout bounds how long one part may take until it is healthy, on a
// machine that has much else to do.
const startTimeout = 2 * time.Minute

// serviceCIDR and podCIDR are told to the control plane; nobody routes the
// first, and the second is given to nodes, which tell their runtimes.
const (
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
	podCIDR     = "10.218.0.0/16"
)

func (p *Plane) startEtcd(ctx context.Context) (err error) {
	client := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.ports.etcd))
	peer := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.ports.etcdPeer))
	p.etcd, err = p.startPart(p.options.Programs.Etcd,
		"--data-dir="+p.path("etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync", "--log-level=warn")
	if err != nil {
		return err
	}
	return p.waitHealthy(ctx, p.etcd.Alive, "etcd", client+"/health")
}

// StartAPIServer starts the API server (again) and returns when it is ready.
func (p *Plane) StartAPIServer(ctx context.Context) (err error) {
	if p.apiserver.Alive() {
		return nil
	}
	args := []string{
		"--bind-address=" + p.address.String(), "--advertise-address=" + p.address.String(),
		"--secure-port=" + strconv.Itoa(p.ports.apiserver),
		"--etcd-servers=http://127.0.0.1:" + strconv.Itoa(p.ports.etcd),
		"--client-ca-file=" + p.path("ca.crt"),
		"--tls-cert-file=" + p.path("apiserver.crt"), "--tls-private-key-file=" + p.path("apiserver.key"),
		"--kubelet-client-certificate=" + p.path("kubelet-client.crt"), "--kubelet-client-key=" + p.path("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-key-file=" + p.path("sa.pub"), "--service-account-signing-key-file=" + p.path("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth", "--allow-privileged",
		// Without it, ending by itself would take a minute: nobody serves the
		// kubernetes Service here anyway.
		"--endpoint-reconciler-type=none",
	}
	if p.options.VerifyKubelets {
		args = append(args, "--kubelet-certificate-authority="+p.path("ca.crt"))
	}
	p.apiserver, err = p.startPart(p.options.Programs.APIServer, append(args, p.options.APIServerFlags...)...)
	if err != nil {
		return err
	}
	return p.waitHealthy(ctx, p.apiserver.Alive, "kube-apiserver", p.Server+"/readyz")
}

// KillAPIServer ends the API server with SIGKILL, as a crash would.
func (p *Plane) KillAPIServer(ctx context.Context) error { return p.apiserver.Kill(ctx) }

// startManagers starts the controllers and the scheduler, which are kept up
// from then on.
func (p *Plane) startManagers(ctx context.Context) error {
	controllers, err := p.keepPart(p.options.Programs.ControllerManager,
		"--kubeconfig="+p.AdminKubeconfig, "--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(p.ports.controllers), "--cert-dir="+p.path("controllers"),
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--root-ca-file="+p.path("ca.crt"), "--service-account-private-key-file="+p.path("sa.key"),
		"--cluster-signing-cert-file="+p.path("ca.crt"), "--cluster-signing-key-file="+p.path("ca.key"),
		"--cluster-signing-duration="+p.options.SigningDuration.String(),
		"--allocate-node-cidrs", "--cluster-cidr="+podCIDR, "--service-cluster-ip-range="+serviceCIDR,
		// The default of 20 requests a second would be the slowest part of every test.
		"--kube-api-qps=200", "--kube-api-burst=400")
	if err != nil {
		return err
	}
	scheduler, err := p.keepPart(p.options.Programs.Scheduler,
		"--kubeconfig="+p.AdminKubeconfig, "--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(p.ports.scheduler), "--cert-dir="+p.path("scheduler"))
	if err != nil {
		return err
	}
	if err := p.waitHealthy(ctx, controllers.alive, "kube-controller-manager", fmt.Sprintf("https://127.0.0.1:%d/healthz", p.ports.controllers)); err != nil {
		return err
	}
	return p.waitHealthy(ctx, scheduler.alive, "kube-scheduler", fmt.Sprintf("https://127.0.0.1:%d/healthz", p.ports.scheduler))
}

func (p *Plane) startPart(program string, args ...string) (*daemon.Daemon, error) {
	return daemon.Start(daemon.Config{Program: program, Args: args, Env: os.Environ(), Log: p.path(filepath.Base(program) + ".log")})
}

// keepPart starts a part that is started again when it ends.
func (p *Plane) keepPart(program string, args ...string) (*kept, error) {
	k, err := keep(func() (*daemon.Daemon, error) { return p.startPart(program, args...) })
	if err == nil {
		p.managers = append(p.managers, k)
	}
	return k, err
}

func (p *Plane) waitHealthy(ctx context.Context, alive func() bool, part, url string) error {
	client, err := p.adminClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = testbed.Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		if !alive() {
			cancel()
			return errors.New("it ended by itself")
		}
		return get(ctx, client, url)
	})
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", part, err, p.Log(part, 20))
	}
	return nil
}

// freePort finds a port that nobody listens on, below those that the kernel
// gives to clients, so that it is still free when a part starts again.
func freePort(ip netip.Addr) (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(10000)
		var l net.Listener
		if l, err = net.Listen("tcp", netip.AddrPortFrom(ip, uint16(port)).String()); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}
