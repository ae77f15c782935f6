package status

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// Config holds the settings of a Writer; see [DefaultConfig].
type Config struct {
	// NodeName is the node that owns the mirror pods.
	NodeName string
	// MaxCalls is how many calls may be under way at once. What waits behind them
	// is written in its newest state. Default 8.
	MaxCalls int
	// CallTimeout bounds each call. Default 30 s.
	CallTimeout time.Duration
	// RetryBase doubles with each failure in a row of one pod up to RetryMax; up
	// to half of it is added at random. Default 500 ms and 30 s.
	RetryBase time.Duration
	RetryMax  time.Duration
	// FlushTime is how long Run goes on after its context ended to write what is
	// not written yet; it returns as soon as nothing is left. Default 2 s.
	FlushTime time.Duration
}

// DefaultConfig has all defaults.
func DefaultConfig(nodeName string) Config {
	return Config{
		NodeName: nodeName, MaxCalls: 8, CallTimeout: 30 * time.Second,
		RetryBase: 500 * time.Millisecond, RetryMax: 30 * time.Second, FlushTime: 2 * time.Second,
	}
}

// Validate names the first field that can not work.
func (c Config) Validate() error {
	switch {
	case c.NodeName == "":
		return errors.New("NodeName: must be set")
	case c.MaxCalls < 1:
		return fmt.Errorf("MaxCalls %d: must be at least 1", c.MaxCalls)
	case c.CallTimeout <= 0:
		return fmt.Errorf("CallTimeout %v: must be positive", c.CallTimeout)
	case c.FlushTime < 0:
		return fmt.Errorf("FlushTime %v: must not be negative", c.FlushTime)
	case c.RetryBase <= 0:
		return fmt.Errorf("RetryBase %v: must be positive", c.RetryBase)
	case c.RetryMax < c.RetryBase:
		return fmt.Errorf("RetryMax %v: must be at least RetryBase %v", c.RetryMax, c.RetryBase)
	}
	return nil
}

// Node is what the writer asks of the node. All methods return at once and may
// be called from anywhere. The default is *node.Node.
type Node interface {
	// Ready is closed when every source of pods has reported: from then on a
	// mirror whose static pod nobody named may go.
	Ready() <-chan struct{}
	// Exists says whether anything of the pod of that UID may be on the node.
	Exists(uid string) bool
	// Remind tells a static pod what its mirror has. When it knows the pod, the
	// node's next word on it is Informed.
	Remind(uid string, told *corev1.PodStatus) bool
}

// Parts are what a Writer calls.
type Parts struct {
	// API is a client of the core group in v1: pods, pods/status and nodes.
	API      rest.Interface
	Observer Observer
	// Log nil: no logs.
	Log *slog.Logger
}

// Observer is told what happened, for metrics. Nil funcs are fine; none may block.
type Observer struct {
	// Written is called when a status has reached the API server, with the time
	// since the first change in it.
	Written func(took time.Duration)
	// Called is called after each call with what it did ("patch", "delete",
	// "create") and how it ended.
	Called func(verb string, err error)
}
