package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/test/integration/testbed"
)

const (
	steadyPods   = 25 // are never touched, and so must never notice anything
	churnPods    = 25 // are deleted and made anew all the time
	churnWorkers = 5  // each has a share of them
)

// churn deletes and makes pods through the API, as controllers do.
type churn struct {
	*env
	ns     string
	random *rand.Rand
	steady map[string]string // container ID by pod
	done   chan string       // name of each pod that came up

	mu      sync.Mutex
	slowest time.Duration // from a pod's deletion until it was gone, since the last kill
}

func newChurn(t *testing.T, e *env, ns string) *churn {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &churn{
		env: e, ns: ns, random: rand.New(rand.NewPCG(seed, 0)), steady: map[string]string{},
		done: make(chan string, 10_000),
	}
}

func steadyName(i int) string { return fmt.Sprintf("steady-%d", i) }
func churnName(i int) string  { return fmt.Sprintf("churn-%d", i) }

// makeAll makes all pods and waits until they are ready.
func (c *churn) makeAll(t *testing.T) {
	t.Helper()
	for i := range steadyPods {
		if err := c.make(t.Context(), steadyPod(c.ns, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range churnPods {
		if err := c.create(t.Context(), churnName(i)); err != nil {
			t.Fatal(err)
		}
	}
	c.allThere(t)
	for i := range steadyPods {
		p := c.untilPod(t, patience, c.ns, steadyName(i), ready)
		c.steady[p.Name] = p.Status.ContainerStatuses[0].ContainerID
	}
}

// start begins to delete and make pods, until stop, which waits until the last
// change was made.
func (c *churn) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for w := range churnWorkers {
		workers.Go(func() {
			for i := w; ctx.Err() == nil; i = (i + churnWorkers) % churnPods {
				if err := c.remake(t.Context(), churnName(i)); err != nil {
					t.Errorf("%s: %v", churnName(i), err)
					return
				}
				c.done <- churnName(i)
			}
		})
	}
	return func() { cancel(); workers.Wait() }
}

// goneWithin is how long a pod may be Terminating before it counts as stuck,
// whoever is killed meanwhile. Five seconds are its grace, used up where the
// container was cut off before its trap was set; then the one who was killed has
// to be back. In 27 kills the slowest took 11 s, and 18 s with 30 processes
// waiting for two processors, which is what the rest is for: soaks run beside
// builds.
const goneWithin = 45 * time.Second

// remake deletes a pod, waits until it is gone, makes it anew and waits until
// it is ready.
func (c *churn) remake(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.remove(ctx, name); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := c.untilGone(ctx, name); err != nil {
		return fmt.Errorf("stuck in its deletion: %w", err)
	}
	if err := c.create(ctx, name); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return c.untilNamed(ctx, name, func(p *corev1.Pod) error {
		if p == nil {
			return fmt.Errorf("it is not there")
		}
		return ready(p)
	})
}

func (c *churn) untilGone(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	began := time.Now()
	err := c.untilNamed(ctx, name, func(p *corev1.Pod) error {
		if p != nil {
			return fmt.Errorf("it is still there: %s", summary(p))
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowest = max(c.slowest, time.Since(began))
	return err
}

// slowestGone is how long the slowest deletion took since the last call.
func (c *churn) slowestGone() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	slowest := c.slowest
	c.slowest = 0
	return slowest
}

func (c *churn) untilNamed(ctx context.Context, name string, check func(*corev1.Pod) error) error {
	return c.pods.Until(ctx, func(all []*corev1.Pod) error {
		for _, p := range all {
			if p.Namespace == c.ns && p.Name == name {
				return check(p)
			}
		}
		return check(nil)
	})
}

// create and remove try again until the API server is there, as controllers do.
func (c *churn) create(ctx context.Context, name string) error {
	return c.make(ctx, churnPod(c.ns, name))
}

func (c *churn) make(ctx context.Context, pod *corev1.Pod) error {
	return again(ctx, func(ctx context.Context) error {
		err := c.core.Post().Namespace(c.ns).Resource("pods").Body(pod).Do(ctx).Error()
		if apierrors.IsAlreadyExists(err) { // the answer of the call before got lost
			return nil
		}
		return err
	})
}

func (c *churn) remove(ctx context.Context, name string) error {
	return again(ctx, func(ctx context.Context) error {
		err := c.core.Delete().Namespace(c.ns).Resource("pods").Name(name).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func again(ctx context.Context, do func(context.Context) error) error {
	return testbed.Eventually(ctx, 200*time.Millisecond, do)
}

func churnPod(ns, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr(int64(5)),
			Containers: []corev1.Container{{
				Name: "main", Image: testbed.BusyboxImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"sh", "-c", "trap 'exit 0' TERM; sleep 10000 & wait"},
			}},
		},
	}
}

// steadyPod is one that nobody touches. Some have probes, which must not notice
// anything either: over the network, or by a command, for which the runtime may
// be away for a while.
func steadyPod(ns string, i int) *corev1.Pod {
	pod := churnPod(ns, steadyName(i))
	c := &pod.Spec.Containers[0]
	switch i % 3 {
	case 0:
		c.Command[2] = "httpd -p 8080; " + c.Command[2]
		connect := func() *corev1.Probe {
			return &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
				PeriodSeconds: 2, TimeoutSeconds: 10,
			}
		}
		c.StartupProbe, c.ReadinessProbe, c.LivenessProbe = connect(), connect(), connect()
	case 1:
		c.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
			PeriodSeconds: 5, TimeoutSeconds: 30,
		}
	}
	return pod
}

// see waits until that many more pods have come up.
func (c *churn) see(t *testing.T, count int) {
	t.Helper()
	limit := time.After(2 * patience)
	for range count {
		select {
		case <-c.done:
		case <-limit:
			t.Fatalf("no pod came up for %v\n%s", 2*patience, c.report())
		}
	}
}

// allThere waits until all pods are there and ready, and none ends.
func (c *churn) allThere(t *testing.T) {
	t.Helper()
	c.untilPods(t, 2*patience, c.ns, allOf(steadyPods+churnPods, func(p *corev1.Pod) error {
		if p.DeletionTimestamp != nil {
			return fmt.Errorf("%s is being deleted: %s", p.Name, summary(p))
		}
		return ready(p)
	}))
}

// checkSteady: the pods that nobody touched are what they were.
func (c *churn) checkSteady(t *testing.T) {
	t.Helper()
	for name, id := range c.steady {
		s := c.untilPod(t, patience, c.ns, name, ready).Status.ContainerStatuses[0]
		if s.ContainerID != id || s.RestartCount != 0 {
			t.Errorf("%s was container %s and is %s, with %d restarts", name, id, s.ContainerID, s.RestartCount)
		}
	}
}
