package podactor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"nodekit.dev/node/lifecycle"
)

// Config holds what an actor needs beside its parts. [DefaultConfig] is a
// good start; RootDir has no default.
type Config struct {
	// RootDir is the agent's directory, such as /var/lib/kubelet. The actor
	// makes termination log files below RootDir/pods/UID/containers.
	RootDir string
	// Order is the pod's place in line for the runtime: lower goes first.
	Order int64
	// LookTimeout bounds one look at the pod; a look that takes longer is tried
	// again. Default 30 s.
	LookTimeout time.Duration
	// RetryBase doubles with each failure in a row of one action up to RetryMax.
	// Default 1 s and 60 s. An error's own RetryAfter wins.
	RetryBase time.Duration
	RetryMax  time.Duration
	// TraceSize is how many decisions the trace keeps at least; it keeps fewer
	// than twice as many. Default 16; 0 keeps none.
	TraceSize int
}

// DefaultConfig has all defaults but RootDir.
func DefaultConfig() Config {
	return Config{
		LookTimeout: 30 * time.Second,
		RetryBase:   time.Second,
		RetryMax:    time.Minute,
		TraceSize:   16,
	}
}

// Validate names the first field that can not work.
func (c Config) Validate() error {
	switch {
	case !filepath.IsAbs(c.RootDir):
		return fmt.Errorf("RootDir %q: must be absolute", c.RootDir)
	case c.LookTimeout <= 0:
		return fmt.Errorf("LookTimeout %v: must be positive", c.LookTimeout)
	case c.RetryBase <= 0:
		return fmt.Errorf("RetryBase %v: must be positive", c.RetryBase)
	case c.RetryMax < c.RetryBase:
		return fmt.Errorf("RetryMax %v: must be at least RetryBase %v", c.RetryMax, c.RetryBase)
	case c.TraceSize < 0:
		return fmt.Errorf("TraceSize %d: must not be negative", c.TraceSize)
	}
	return nil
}

// Parts are what an actor calls. All of them are shared by all actors.
type Parts struct {
	// Engine, Watcher, Puller, Mounter and Specs are required.
	Engine  Engine
	Watcher Watcher
	Puller  Puller
	Mounter Mounter
	Specs   Specs

	// Admitters are asked in order, Allocator last; the first that does not
	// admit decides. Without any, every pod is admitted.
	Admitters []Admitter
	Allocator Allocator
	// Cgroups nil: the runtime makes the pod's cgroup by itself.
	Cgroups Cgroups
	// Environment nil: there are no ConfigMaps, Secrets, services and files for
	// environments. RuntimeClasses nil: only the default class is known.
	// UserNamespaces nil: pods with hostUsers: false do not start.
	Environment    Environment
	RuntimeClasses RuntimeClasses
	UserNamespaces UserNamespaces
	// Handlers nil: a postStart or preStop handler fails with a message.
	Handlers HookRunner
	// Prober nil: probes are not made; containers with one are never ready.
	Prober Prober
	// Hooks nil: no vendor hooks.
	Hooks Hooks
	// Gate nil: sandboxes and containers start without waiting in line.
	Gate StartGate

	// Packer nil: traces are kept uncompressed.
	Packer *Packer

	// Status and Events may be nil.
	Status StatusSink
	Events EventSink
	// Observer's funcs may be nil.
	Observer Observer
	// Decide is [lifecycle.Decide]; tests put another one here.
	Decide func(lifecycle.Input) lifecycle.Plan
	// Log nil: no logs.
	Log *slog.Logger
}

// Observer is told what actors do, for metrics. No func may block.
type Observer struct {
	// ActionDone is called when an action returned, before the look at what it
	// left behind.
	ActionDone func(ActionInfo)
}

// ActionInfo is one action that returned.
type ActionInfo struct {
	UID  string
	Kind lifecycle.Kind
	// Container is the name of the container that the action is about; empty:
	// it is about the pod.
	Container string
	// Took includes the wait for a place at the StartGate.
	Took time.Duration
	Err  error
}

// Admitter has a say in whether a pod starts.
type Admitter interface {
	// Admit may block until ctx ends. It may be called again for a pod that it
	// admitted before.
	Admit(ctx context.Context, req AdmitRequest) (lifecycle.Admission, error)
}

// StartGate bounds how many sandboxes and containers the runtime starts at once.
type StartGate interface {
	// Enter blocks until it is the caller's turn or ctx ends: pods that have
	// begun first, then by order. The caller calls leave when done.
	Enter(ctx context.Context, begun bool, order int64) (leave func(), err error)
}

// Validate names the required parts that are missing.
func (p Parts) Validate() error {
	var missing []string
	for name, absent := range map[string]bool{
		"Engine":  p.Engine == nil,
		"Watcher": p.Watcher == nil,
		"Puller":  p.Puller == nil,
		"Mounter": p.Mounter == nil,
		"Specs":   p.Specs == nil,
		"Decide":  p.Decide == nil,
	} {
		if absent {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing parts: %s", strings.Join(sorted(missing), ", "))
	}
	return nil
}

// CheckUID refuses a UID that would leave the pods directory when it is used
// as the name of one.
func CheckUID(uid string) error {
	if uid == "" {
		return errors.New("UID is empty")
	}
	if uid == "." || uid == ".." || strings.Contains(uid, "/") || strings.ContainsFunc(uid, unicode.IsControl) {
		return fmt.Errorf("UID %q can not name a directory", uid)
	}
	return nil
}
