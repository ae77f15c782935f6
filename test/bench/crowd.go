package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// Crowd is a node with many pods that just run. One goroutine uses it.
type Crowd struct {
	pods   []*corev1.Pod
	world  *world
	told   *complaints
	node   *node.Node
	news   *news
	cancel context.CancelFunc
	ended  chan error
}

// Start makes a node, hands it so many pods at once, and returns when all run.
// dir is its root directory.
func Start(ctx context.Context, dir string, pods int) (*Crowd, error) {
	c := &Crowd{news: newNews(), ended: make(chan error, 1)}
	c.world, c.told = newWorld(pods)
	for i := range pods {
		c.pods = append(c.pods, podOf(i))
	}
	cfg := node.DefaultConfig()
	cfg.RootDir = dir
	cfg.Rules.BackoffBase, cfg.Rules.BackoffMax = time.Nanosecond, time.Nanosecond
	var err error
	c.node, err = node.New(cfg, node.Parts{
		Engine: c.world, Watcher: c.world, Puller: c.world, Mounter: noVolumes{}, Specs: specs{},
		Sources:  []node.Ordered[node.Source]{{Name: "bench", Value: fixed{c.pods}}},
		Observer: node.Observer{PodStatus: c.news.status},
		Decide: func(in lifecycle.Input) lifecycle.Plan {
			plan := lifecycle.Decide(in)
			c.news.decided(in)
			return plan
		},
	})
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go c.world.forward(run)
	go func() { c.ended <- c.node.Run(run) }()
	for _, pod := range c.pods {
		if err := c.news.await(ctx, string(pod.UID), func(n *podNews) bool { return n.ready }); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// Stop ends the node, and says what the runtime had against it.
func (c *Crowd) Stop() error {
	c.cancel()
	err := <-c.ended
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, c.told.first())
}

// busyPods is how many pods events are about, at most: as many in each crowd, so
// that they have the same past.
const busyPods = 50

func (c *Crowd) busy() int { return min(busyPods, len(c.pods)) }

// uid is the pod of the ith event. Those pods are spread over the crowd.
func (c *Crowd) uid(i int) string {
	return string(c.pods[i%c.busy()*(len(c.pods)/c.busy())].UID)
}

// Hint tells the node that one pod may have changed, and returns when it has
// looked and found nothing to do.
func (c *Crowd) Hint(ctx context.Context, i int) error {
	uid := c.uid(i)
	before := c.news.of(uid).decisions
	c.world.hint(ctx, runtime.Hint{UID: uid, At: time.Now()})
	return c.news.await(ctx, uid, func(n *podNews) bool { return n.decisions > before })
}

// Restart lets one pod's container fail, and returns when it runs again.
func (c *Crowd) Restart(ctx context.Context, i int) error {
	uid := c.uid(i)
	before := c.news.of(uid).restarts
	if !c.world.Exit(uid, "app", 1) {
		return fmt.Errorf("pod %s does not run", uid)
	}
	return c.news.await(ctx, uid, func(n *podNews) bool { return n.restarts > before && n.ready })
}

func podOf(i int) *corev1.Pod {
	grace := int64(30)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("uid-", i)), Namespace: "default", Name: fmt.Sprint("pod-", i)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "app", Image: "registry.test/app:1", ImagePullPolicy: corev1.PullIfNotPresent}},
		},
	}
}

// fixed is a source that always wants the same pods.
type fixed struct{ pods []*corev1.Pod }

// Name names it.
func (fixed) Name() string { return "bench" }

// Run sends the pods once.
func (f fixed) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	select {
	case updates <- node.SourceUpdate{Source: "bench", Pods: f.pods}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// news is what was heard of each pod.
type news struct {
	mu      sync.Mutex
	pods    map[string]*podNews
	awoke   chan struct{} // something of the awaited pod changed
	awaited string
}

type podNews struct {
	ready     bool
	restarts  int32
	decisions int
}

func newNews() *news { return &news{pods: map[string]*podNews{}, awoke: make(chan struct{}, 1)} }

// change notes something of one pod, and wakes who waits for it.
func (n *news) change(uid string, what func(*podNews)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[uid]
	if p == nil {
		p = &podNews{}
		n.pods[uid] = p
	}
	what(p)
	if n.awaited == uid {
		select {
		case n.awoke <- struct{}{}:
		default:
		}
	}
}

func (n *news) decided(in lifecycle.Input) {
	n.change(in.Want.UID, func(p *podNews) { p.decisions++ })
}

func (n *news) status(view node.PodView) {
	n.change(view.UID, func(p *podNews) {
		p.ready = false
		for _, c := range view.Status.Conditions {
			p.ready = p.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		for _, c := range view.Status.ContainerStatuses {
			p.restarts = c.RestartCount
		}
	})
}

func (n *news) of(uid string) podNews {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.pods[uid]; p != nil {
		return *p
	}
	return podNews{}
}

// await returns when what was heard of a pod is enough.
func (n *news) await(ctx context.Context, uid string, enough func(*podNews) bool) error {
	n.mu.Lock()
	n.awaited = uid
	n.mu.Unlock()
	for {
		if now := n.of(uid); enough(&now) {
			return nil
		}
		select {
		case <-n.awoke:
		case <-ctx.Done():
			return fmt.Errorf("wait for pod %s: %w", uid, context.Cause(ctx))
		}
	}
}
