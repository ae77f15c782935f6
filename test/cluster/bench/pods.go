package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/test/cluster/follow"
	measure "nodekit.dev/test/integration/bench"
	"nodekit.dev/test/integration/testbed"
)

const namespace = metav1.NamespaceDefault

// newPod is an ordinary pod of one container that ends at once on SIGTERM.
func newPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "main", Image: testbed.PauseImage}},
		},
	}
}

// create makes pods, all at once, and returns how long each of them took until
// it was Ready, in the order of their names.
func (c *cluster) create(ctx context.Context, names []string) (measure.Together, error) {
	return c.createAs(ctx, names, newPod)
}

// createAs is create with pods of another kind.
func (c *cluster) createAs(ctx context.Context, names []string, kind func(name, node string) *corev1.Pod) (measure.Together, error) {
	return c.all(ctx, names, func(name string) (<-chan time.Time, error) {
		ready := c.sights.expect(name).ready
		return ready, c.api.Post().Namespace(namespace).Resource("pods").Body(kind(name, c.node().Name)).Do(ctx).Error()
	})
}

// delete deletes pods, all at once, and returns how long each of them took until
// the API server had it no more.
func (c *cluster) delete(ctx context.Context, names []string) (measure.Together, error) {
	return c.all(ctx, names, func(name string) (<-chan time.Time, error) {
		return c.sights.of(name).gone, c.api.Delete().Namespace(namespace).Resource("pods").Name(name).Do(ctx).Error()
	})
}

// all asks for something of all pods at once, and waits for the time that each
// of them was seen to have come to it.
func (c *cluster) all(ctx context.Context, names []string, ask func(string) (<-chan time.Time, error)) (measure.Together, error) {
	took, errs := make(measure.Together, len(names)), make([]error, len(names))
	var asking sync.WaitGroup
	began := time.Now()
	for i, name := range names {
		asking.Go(func() {
			seen, err := ask(name)
			if err != nil {
				errs[i] = err
				return
			}
			took[i], errs[i] = c.await(ctx, name, seen, began)
		})
	}
	asking.Wait()
	return took, errors.Join(errs...)
}

// patience bounds how long a pod may take, in a burst on a busy machine.
const patience = 3 * time.Minute

func (c *cluster) await(ctx context.Context, name string, seen <-chan time.Time, began time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case at := <-seen:
		return at.Sub(began), nil
	case <-ctx.Done():
		var state any = "never seen"
		if pod := c.sights.last(name); pod != nil {
			state = pod.Status
		}
		return 0, fmt.Errorf("pod %s: %w: %+v", name, context.Cause(ctx), state)
	}
}

// restFor is how long the agent is left alone after a pod: what it still tells of
// that one, events above all, is no part of the next one.
const restFor = time.Second

// restedTurn is a measure.Turn by the agent, which is at rest before and after.
func (c *cluster) restedTurn(ctx context.Context, i int) (start, stop time.Duration, err error) {
	if start, stop, err = c.turn(ctx, i); err != nil {
		return 0, 0, err
	}
	return start, stop, measure.Pass(ctx, restFor)
}

// turn creates a pod and deletes it.
func (c *cluster) turn(ctx context.Context, i int) (start, stop time.Duration, err error) {
	return c.turnAs(ctx, fmt.Sprintf("serial-%d", i), newPod)
}

// turnAs is turn with a pod of another kind.
func (c *cluster) turnAs(ctx context.Context, name string, kind func(name, node string) *corev1.Pod) (start, stop time.Duration, err error) {
	names := []string{name}
	started, err := c.createAs(ctx, names, kind)
	if err != nil {
		return 0, 0, err
	}
	stopped, err := c.delete(ctx, names)
	if err != nil {
		return 0, 0, err
	}
	return started[0], stopped[0], nil
}

// burst creates many pods at once, and then deletes them. It also returns the
// CPU time that the agent took for it.
func (c *cluster) burst(ctx context.Context, pods int) (start, stop measure.Together, cpu time.Duration, err error) {
	var names []string
	for i := range pods {
		names = append(names, fmt.Sprintf("burst-%d", i))
	}
	before, err := measure.CPUTime(c.pid())
	if err != nil {
		return nil, nil, 0, err
	}
	if start, err = c.create(ctx, names); err != nil {
		return nil, nil, 0, err
	}
	if stop, err = c.delete(ctx, names); err != nil {
		return nil, nil, 0, err
	}
	after, err := measure.CPUTime(c.pid())
	return start, stop, after - before, err
}

// sights are what the watch has seen of pods, by name. Its methods are safe for
// concurrent use.
type sights struct {
	mu     sync.Mutex
	byName map[string]*sight
}

// sight is one pod. The channels hold at most one time each.
type sight struct {
	ready, gone chan time.Time
	pod         *corev1.Pod // as it was last
}

func newSights() *sights { return &sights{byName: map[string]*sight{}} }

// expect begins anew with a name.
func (s *sights) expect(name string) *sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &sight{ready: make(chan time.Time, 1), gone: make(chan time.Time, 1)}
	s.byName[name] = one
	return one
}

func (s *sights) of(name string) *sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

// last is the pod as it was seen last; nil: it was not.
func (s *sights) last(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name].pod
}

// changed notes the first Ready, and the end.
func (s *sights) changed(c follow.Change[*corev1.Pod]) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byName[c.New.Name]
	if one == nil {
		return
	}
	one.pod = c.New
	switch {
	case c.Gone:
		note(one.gone, now)
	case isReady(c.New):
		note(one.ready, now)
	}
}

// note puts the time into a channel that has none.
func note(in chan time.Time, at time.Time) {
	select {
	case in <- at:
	default:
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
