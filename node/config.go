package node

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// Config holds the settings of a node. [DefaultConfig] has all but RootDir.
type Config struct {
	// RootDir is the agent's directory, such as /var/lib/kubelet.
	RootDir string
	// Rules are the settings that decisions about pods depend on. An empty
	// RuntimeName is read from the runtime.
	Rules lifecycle.Rules
	// StartWidth is how many sandboxes and containers the runtime is asked to
	// start at once. Default: the number of CPUs, at least 4. One pod gets half
	// of it at most.
	StartWidth int
	// StartPatience is how long one start counts against StartWidth, so that
	// starts that hang do not keep other pods from starting. Default 10 s.
	StartPatience time.Duration
	// LookTimeout, RetryBase, RetryMax and TraceSize as in [podactor.Config].
	LookTimeout time.Duration
	RetryBase   time.Duration
	RetryMax    time.Duration
	TraceSize   int
	// HostIPs is asked for the node's addresses, primary first, every
	// HealthPeriod, by one goroutine: a machine may get its network after its
	// agent, and another one later. All pods are told what changed. None: they
	// stay as they are. It must not block; nil: Rules.HostIPs are for good.
	HostIPs func(ctx context.Context) []string
	// HealthPeriod is how often the runtime's last known health is read, which
	// costs no call. Default 1 s.
	HealthPeriod time.Duration

	// DrainOnStop stops the containers of all pods before Run returns, within
	// DrainTimeout (default 30 s). Without it, they run on. The pods' grace ends
	// a tenth of DrainTimeout earlier, at least 1 s, so that there is time to
	// kill what does not stop by itself; whoever bounds Run from outside gives
	// it more than DrainTimeout.
	DrainOnStop  bool
	DrainTimeout time.Duration
	// ReadyWhen decides when all that the sources want is known, so that what
	// nobody wants may go. Default [AllReported].
	ReadyWhen ReadyPolicy
	// OnReady is called once when the node becomes ready. It must not block.
	OnReady func()
}

// DefaultConfig has all defaults but RootDir.
func DefaultConfig() Config {
	actor := podactor.DefaultConfig()
	return Config{
		Rules:         lifecycle.DefaultRules(),
		StartWidth:    max(4, runtime.NumCPU()),
		StartPatience: 10 * time.Second,
		LookTimeout:   actor.LookTimeout,
		RetryBase:     actor.RetryBase,
		RetryMax:      actor.RetryMax,
		TraceSize:     actor.TraceSize,
		HealthPeriod:  time.Second,
		DrainTimeout:  30 * time.Second,
		ReadyWhen:     AllReported,
	}
}

// drainGrace is the longest grace of a pod in a drain.
func (c Config) drainGrace() time.Duration {
	return max(0, c.DrainTimeout-max(c.DrainTimeout/10, time.Second))
}

// Validate names the first field that can not work.
func (c Config) Validate() error {
	switch {
	case c.StartWidth < 1:
		return fmt.Errorf("StartWidth %d: must be at least 1", c.StartWidth)
	case c.StartPatience <= 0:
		return fmt.Errorf("StartPatience %v: must be positive", c.StartPatience)
	case c.HealthPeriod <= 0:
		return fmt.Errorf("HealthPeriod %v: must be positive", c.HealthPeriod)
	case c.DrainOnStop && c.DrainTimeout <= 0:
		return fmt.Errorf("DrainTimeout %v: must be positive with DrainOnStop", c.DrainTimeout)
	case c.ReadyWhen == nil:
		return fmt.Errorf("ReadyWhen: must be set")
	}
	return c.actor(0).Validate()
}

func (c Config) actor(order int64) podactor.Config {
	return podactor.Config{
		RootDir: c.RootDir, Order: order, LookTimeout: c.LookTimeout,
		RetryBase: c.RetryBase, RetryMax: c.RetryMax, TraceSize: c.TraceSize,
	}
}

// ReadyPolicy is a pure decision: has enough been heard to know every pod that
// anybody wants? Until it says so, pods found in the runtime that no source
// named are left alone.
type ReadyPolicy func(ReadyInput) bool

// ReadyInput is all that a [ReadyPolicy] may look at.
type ReadyInput struct {
	// Reported says for each source, by name, whether it has delivered.
	Reported map[string]bool
	// Waited is the time since the node started.
	Waited time.Duration
}

// AllReported wants every source to have delivered once.
func AllReported(in ReadyInput) bool {
	for _, reported := range in.Reported {
		if !reported {
			return false
		}
	}
	return true
}

// Parts are what a node calls. Engine, Watcher, Puller, Mounter and Specs are
// required; without any of the others the node does without.
type Parts struct {
	Engine    Engine
	Watcher   Watcher
	Puller    Puller
	Mounter   Mounter
	Specs     Specs
	Allocator Allocator
	Cgroups   Cgroups
	Handlers  HookRunner
	Prober    Prober
	// Environment, RuntimeClasses and UserNamespaces as in [podactor.Parts].
	Environment    Environment
	RuntimeClasses RuntimeClasses
	UserNamespaces UserNamespaces
	// PodDirs finds pod directories that an agent left behind.
	PodDirs PodDirLister

	// Groups; see [Ordered]. Stopping and Cleanup of hooks run in reverse.
	Sources   []Ordered[Source]
	Mutators  []Ordered[Mutator]
	Admitters []Ordered[Admitter]
	Hooks     []Ordered[Hook]
	// Mutators of what Specs and the pod machine made.
	SandboxMutators   []Ordered[SandboxMutator]
	ContainerMutators []Ordered[ContainerMutator]
	StatusMutators    []Ordered[StatusMutator]
	// StatusSinks and EventSinks all get everything.
	StatusSinks []StatusSink
	EventSinks  []EventSink

	// Decide is [lifecycle.Decide] unless a test sets another one.
	Decide   func(lifecycle.Input) lifecycle.Plan
	Observer Observer
	// Log nil: no logs.
	Log *slog.Logger
}

// PodDirLister finds the directories of pods.
type PodDirLister interface {
	// ListPodDirs lists the UIDs that have a directory. It may block.
	ListPodDirs(ctx context.Context) ([]string, error)
}

// Observer is told what happens, for metrics. Nil funcs are fine; none may block.
type Observer struct {
	// PodAdded and PodRemoved bracket the life of each actor.
	PodAdded   func(PodView)
	PodRemoved func(PodView)
	// PodStatus is called with each new status.
	PodStatus func(PodView)
	// ActionDone is called with each action of a pod that returned.
	ActionDone func(podactor.ActionInfo)
	// SourceUpdate is called with each update and how many pods it named.
	SourceUpdate func(source string, pods int)
}

// groups are the ordered parts after sorting.
type groups struct {
	sources   []Ordered[Source]
	mutators  []Ordered[Mutator]
	admitters []podactor.Admitter
	hooks     hookChain
	specs     specMutators
	status    []Ordered[StatusMutator]
}

func (p Parts) sort() (g groups, err error) {
	for _, s := range p.Sources {
		if s.Value != nil && s.Value.Name() != s.Name {
			return g, fmt.Errorf("source %q calls itself %q", s.Name, s.Value.Name())
		}
	}
	if g.sources, err = InOrder("source", p.Sources); err != nil {
		return g, err
	}
	if g.mutators, err = InOrder("mutator", p.Mutators); err != nil {
		return g, err
	}
	if g.hooks, err = InOrder("hook", p.Hooks); err != nil {
		return g, err
	}
	if g.specs.sandbox, err = InOrder("sandbox mutator", p.SandboxMutators); err != nil {
		return g, err
	}
	if g.specs.container, err = InOrder("container mutator", p.ContainerMutators); err != nil {
		return g, err
	}
	if g.status, err = InOrder("status mutator", p.StatusMutators); err != nil {
		return g, err
	}
	admitters, err := InOrder("admitter", p.Admitters)
	for _, a := range admitters {
		g.admitters = append(g.admitters, namedAdmitter(a))
	}
	return g, err
}

// missingSources lists those that did not report yet.
func missingSources(reported map[string]bool) string {
	var missing []string
	for name, ok := range reported {
		if !ok {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return strings.Join(missing, ", ")
}
