package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/test/cluster/follow"
	"nodekit.dev/test/cluster/world"
	measure "nodekit.dev/test/integration/bench"
	"nodekit.dev/test/integration/testbed"
)

// cluster is a cluster of one node. One goroutine uses it.
type cluster struct {
	world   *world.World
	program string // the agent's: the stripped cmd/kubelet, or what testbed.AgentEnv names
	api     rest.Interface
	sights  *sights
	// unwatch ends the watch, and watched is closed when it has ended.
	unwatch context.CancelFunc
	watched chan struct{}
}

func startCluster(ctx context.Context) (*cluster, error) {
	w, err := world.Start(ctx, world.Options{})
	if err != nil {
		return nil, err
	}
	c := &cluster{world: w, sights: newSights(), unwatch: func() {}, watched: make(chan struct{})}
	if err := c.start(ctx); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, c.stop(undo))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) (err error) {
	if c.program = os.Getenv(testbed.AgentEnv); c.program == "" {
		if c.program, err = measure.Stripped(ctx, c.bed().Dir, "./cmd/kubelet"); err != nil {
			return err
		}
	}
	if c.api, err = follow.Client(c.world.Plane.AdminKubeconfig, corev1.SchemeGroupVersion); err != nil {
		return err
	}
	pods := follow.New(c.api, "pods", c.sights.changed)
	watching, cancel := context.WithCancel(ctx)
	c.unwatch = func() {
		cancel()
		<-c.watched
	}
	go func() {
		defer close(c.watched)
		pods.Run(watching)
	}()
	return nil
}

// stop ends all, pods included.
func (c *cluster) stop(ctx context.Context) error {
	c.unwatch()
	return c.world.Stop(ctx)
}

func (c *cluster) node() *world.Node { return c.world.Nodes[0] }

func (c *cluster) bed() *testbed.Bed { return c.node().Bed }

func (c *cluster) pid() int { return c.node().Agent.PID() }

// startAgent starts the agent unless it runs, and returns when a pod has come
// and gone: from then on it is a member like any other.
func (c *cluster) startAgent(ctx context.Context, flags ...string) error {
	if a := c.node().Agent; a != nil && a.Alive() {
		return nil
	}
	err := c.world.StartAgent(ctx, c.node(), world.AgentOptions{
		Program: c.program,
		Flags:   append([]string{"--v=2"}, flags...),
		Config:  map[string]any{"logging": map[string]any{"flushFrequency": "5s"}}, // as it is by default
	})
	if err != nil {
		return err
	}
	if _, _, err := c.restedTurn(ctx, 0); err != nil {
		return fmt.Errorf("the first pod: %w\n%s", err, c.node().Agent.Log(30))
	}
	return nil
}

// endAgent ends the agent if it runs; it has no pods.
func (c *cluster) endAgent(ctx context.Context) error {
	if c.node().Agent == nil {
		return nil
	}
	return c.node().Agent.Stop(ctx)
}

// record lets an agent start and stop a pod through a recorder.
func (c *cluster) record(ctx context.Context) (t measure.Template, err error) {
	proxy, err := measure.Record(ctx, c.bed().Socket, filepath.Join(c.bed().Dir, "recorder.sock"))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	if err := errors.Join(c.endAgent(ctx), c.startAgent(ctx, "--container-runtime-endpoint=unix://"+proxy.Socket)); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, c.endAgent(context.WithoutCancel(ctx))) }()
	const name = "template"
	proxy.Take()
	if _, err := c.create(ctx, []string{name}); err != nil {
		return t, err
	}
	if t, err = measure.TemplateOf(c.sights.last(name), c.node().Agent.Root, proxy.Take()); err != nil {
		return t, err
	}
	if _, err := c.delete(ctx, []string{name}); err != nil {
		return t, err
	}
	return t, t.Stopped(proxy.Take())
}

// withoutAgent does something while the agent stands still, and returns when it
// has looked at what it missed.
func (c *cluster) withoutAgent(ctx context.Context, do func() error) error {
	if err := syscall.Kill(c.pid(), syscall.SIGSTOP); err != nil {
		return err
	}
	err := do()
	if err := errors.Join(err, syscall.Kill(c.pid(), syscall.SIGCONT)); err != nil {
		return err
	}
	return c.quiet(ctx)
}

// quiet waits until the agent does nothing: less than a millisecond in fifty.
func (c *cluster) quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("the agent did not come to rest"))
	defer cancel()
	before := time.Duration(0)
	for {
		now, err := measure.CPUTime(c.pid())
		if err != nil {
			return err
		}
		if before > 0 && now-before < time.Millisecond {
			return nil
		}
		before = now
		if err := measure.Pass(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
