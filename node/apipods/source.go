package apipods

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog"
	"nodekit.dev/node"
)

// Name is what the node knows the source by, as in the annotation
// kubernetes.io/config.source.
const Name = "api"

// Config holds the settings of a Source; see [DefaultConfig].
type Config struct {
	// NodeName is the node whose pods are watched.
	NodeName string
	// RetryBase doubles with each failure in a row up to RetryMax; up to half of
	// it is added at random. Default 500 ms and 10 s.
	RetryBase time.Duration
	RetryMax  time.Duration
	// ListTimeout bounds one list. Default 1 min.
	ListTimeout time.Duration
	// WatchTime is how long the server is asked to keep one watch open: at
	// least this, at most twice as long. Default 5 min.
	WatchTime time.Duration
}

// DefaultConfig has all defaults.
func DefaultConfig(nodeName string) Config {
	return Config{
		NodeName: nodeName, RetryBase: 500 * time.Millisecond, RetryMax: 10 * time.Second,
		ListTimeout: time.Minute, WatchTime: 5 * time.Minute,
	}
}

// Validate names the first field that can not work.
func (c Config) Validate() error {
	switch {
	case c.NodeName == "":
		return errors.New("NodeName: must be set")
	case c.RetryBase <= 0:
		return fmt.Errorf("RetryBase %v: must be positive", c.RetryBase)
	case c.RetryMax < c.RetryBase:
		return fmt.Errorf("RetryMax %v: must be at least RetryBase %v", c.RetryMax, c.RetryBase)
	case c.ListTimeout <= 0:
		return fmt.Errorf("ListTimeout %v: must be positive", c.ListTimeout)
	case c.WatchTime < time.Second:
		return fmt.Errorf("WatchTime %v: must be at least 1s", c.WatchTime)
	}
	return nil
}

// Copies is told what the API server has. No method may block; all are called
// by one goroutine. The default is node/status.
type Copies interface {
	// PodSeen brings the newest copy of a pod, which is never changed later.
	// The same copy may come twice.
	PodSeen(pod *corev1.Pod)
	// PodGone brings the last known copy of a pod that does not exist any more.
	PodGone(pod *corev1.Pod)
	// InSync says that the server answers and that all pods it has were told.
	InSync()
}

// Source is a node.Source of the pods of the API server. Use New.
type Source struct {
	cfg    Config
	api    rest.Interface
	copies Copies
	log    *slog.Logger
}

// New checks and allocates. api is a client of the core group in v1; copies nil:
// nobody wants to know.
func New(cfg Config, api rest.Interface, copies Copies, log *slog.Logger) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("API pods: config: %w", err)
	}
	if api == nil {
		return nil, errors.New("API pods: a REST client of the core group is required")
	}
	if copies == nil {
		copies = nobody{}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Source{cfg: cfg, api: api, copies: copies, log: log}, nil
}

type nobody struct{}

func (nobody) PodSeen(*corev1.Pod) {}
func (nobody) PodGone(*corev1.Pod) {}
func (nobody) InSync()             {}

// Name is "api".
func (*Source) Name() string { return Name }

// Run lists and watches until ctx ends, and returns its error. It may be run
// again after it returned, not twice at a time.
func (s *Source) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	ctx = clientlog.Context(ctx, s.log)
	f := &follower{Source: s, updates: updates, pods: map[types.UID]known{}}
	for ctx.Err() == nil {
		err := f.once(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		select {
		case <-time.After(f.failedWith(ctx, err)):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
