package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
)

// Channel is a source that is set from Go, for programs that embed an agent.
// Use NewChannel; all methods may be used concurrently.
type Channel struct {
	cfg  Config
	name string

	mu   sync.Mutex
	pods []*corev1.Pod
	set  bool
	seen map[types.UID]string
	news chan struct{} // holds one token
}

// NewChannel makes a source of that name. The name must not be one of those
// that mean something to others ("file", "http", "api").
func NewChannel(name string, cfg Config) (*Channel, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if name == "file" || name == "http" || name == "api" {
		return nil, fmt.Errorf("source: name %q is taken", name)
	}
	return &Channel{cfg: cfg, name: name, seen: map[types.UID]string{}, news: make(chan struct{}, 1)}, nil
}

// Name is what NewChannel was told.
func (c *Channel) Name() string { return c.name }

// Set replaces the whole set of pods; those that are not in it any more are
// deleted. It never blocks, may come before Run, and the last call wins. The
// pods are copied, get the API's defaults, and where they have no UID one made
// from their content, so that a changed pod replaces the old one. Names stay as
// they are. When a pod is invalid, nothing changes and the error says which.
func (c *Channel) Set(pods []*corev1.Pod) error {
	now := time.Now().Format(time.RFC3339Nano)
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	ready := make([]*corev1.Pod, 0, len(pods))
	seen := map[types.UID]string{}
	names := map[string]bool{}
	for _, in := range pods {
		pod, err := c.complete(in, now)
		if err == nil {
			name := pod.Namespace + "/" + pod.Name
			if _, twice := seen[pod.UID]; twice || names[name] {
				err = errors.New("is there twice, by name or UID")
			}
			names[name] = true
			seen[pod.UID] = pod.Annotations["kubernetes.io/config.seen"]
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", in.Namespace, in.Name, err))
			continue
		}
		ready = append(ready, pod)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	c.pods, c.set, c.seen = ready, true, seen
	select {
	case c.news <- struct{}{}:
	default:
	}
	return nil
}

func (c *Channel) complete(in *corev1.Pod, now string) (*corev1.Pod, error) {
	content, err := contentHash(in)
	if err != nil {
		return nil, err
	}
	o := origin{source: c.name}
	pod := in.DeepCopy()
	fullName(pod, c.cfg.NodeName, o)
	if pod.UID == "" {
		pod.UID = ownUID(content, c.cfg.NodeName, o)
	}
	if seen := c.seen[pod.UID]; seen != "" {
		now = seen
	}
	stamp(pod, c.cfg.NodeName, content, now, o)
	Default(pod)
	return pod, c.cfg.check(pod)
}

// Run sends what was Set until ctx ends. Nothing is sent before the first Set.
func (c *Channel) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	// A Run after an earlier one starts with what is set now.
	for {
		c.mu.Lock()
		pods, set := c.pods, c.set
		c.mu.Unlock()
		if set {
			select {
			case updates <- node.SourceUpdate{Source: c.name, Pods: pods}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-c.news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
