package runtimetest

import (
	"context"
	"slices"
	"sync"

	"nodekit.dev/runtime"
)

// Reporter is told what a sound agent never does; testing.TB fits it. It is
// called with a lock of the World held and must not call the World.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Config sets a World up. The zero value is a strict runtime with events that
// knows the default runtime handler only and can pull every image.
type Config struct {
	// Allow switches rules off, for tests that break them on purpose.
	Allow []Rule
	// Seed decides which calls a Fault with a Probability hits.
	Seed uint64
	// Handlers are the runtime handlers beside the default one.
	Handlers []string
	// CgroupDriver is what RuntimeConfig says: "systemd" or, by default, "cgroupfs".
	CgroupDriver string
	// DualStack gives every pod an IPv6 address behind its IPv4 address.
	DualStack bool
	// NoEvents makes GetContainerEvents unimplemented, as in older runtimes.
	NoEvents bool
	// WriteLogs makes containers write their Output as CRI log files. The log
	// directory must exist, as with a real runtime.
	WriteLogs bool
	// EventBuffer is how many events wait for a slow reader before the oldest
	// are lost. Default 4096.
	EventBuffer int
}

const (
	defaultEventBuffer = 4096
	// PauseImage is there from the start, pinned.
	PauseImage = "registry.k8s.io/pause:3.10"
)

// World is a strict container runtime in memory. Its methods are the calls of
// the CRI in terms of package runtime; Serve puts the CRI itself over it. All
// methods may be called concurrently. Use NewWorld.
//
// Time is that of package time, so a World made inside a synctest bubble runs
// on the bubble's clock. It needs no goroutine and no Close.
type World struct {
	report  Reporter
	cfg     Config
	allowed map[Rule]bool
	faults  faults
	scripts scripts

	mu         sync.Mutex
	pods       map[string]*pod // by UID
	sandboxes  map[string]*sandbox
	containers map[string]*container
	made       uint64 // IDs given out so far
	addresses  addressPool
	images     imageStore
	events     broadcaster
	health     health
	violations []Violation
	calls      map[Method]*callCount
	servers    map[*Server]bool
	life       chan struct{} // closed when the runtime goes down
	down       bool
}

// pod is all that the World holds about one pod UID. It goes with its last
// sandbox or container, unless something has to be remembered.
type pod struct {
	uid, namespace, name string

	sandboxes  []*sandbox
	containers []*container
	forbidden  bool
}

type health struct {
	runtimeDown, networkDown string // why; empty: ready
	podCIDR                  string // what UpdateRuntimeConfig last told
}

// NewWorld makes an empty runtime that reports to report (usually a *testing.T).
func NewWorld(report Reporter, cfg Config) *World {
	if cfg.EventBuffer <= 0 {
		cfg.EventBuffer = defaultEventBuffer
	}
	w := &World{
		report:     report,
		cfg:        cfg,
		allowed:    map[Rule]bool{},
		faults:     newFaults(cfg.Seed),
		scripts:    newScripts(),
		pods:       map[string]*pod{},
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*container{},
		images:     newImageStore(),
		events:     newBroadcaster(cfg.EventBuffer),
		calls:      map[Method]*callCount{},
		servers:    map[*Server]bool{},
		life:       make(chan struct{}),
	}
	for _, r := range cfg.Allow {
		w.allowed[r] = true
	}
	w.images.addPinned(PauseImage)
	return w
}

// SetNetwork makes the network ready (why empty) or not ready. Sandboxes of
// pods without the host's network can not be made meanwhile.
func (w *World) SetNetwork(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.health.networkDown = why
}

// SetRuntime makes the runtime's own condition ready (why empty) or not ready.
func (w *World) SetRuntime(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.health.runtimeDown = why
}

// statusLocked is the runtime's view of its own health.
func (w *World) statusLocked() runtime.Status {
	s := runtime.Status{
		Name:         runtimeName,
		Version:      runtimeVersion,
		APIVersion:   "v1",
		RuntimeReady: w.health.runtimeDown == "",
		NetworkReady: w.health.networkDown == "",
	}
	s.Runtime = condition(w.health.runtimeDown, reasonRuntimeNotReady)
	s.Network = condition(w.health.networkDown, reasonNetworkNotReady)
	switch {
	case !s.RuntimeReady:
		s.Reason, s.Message = s.Runtime.Reason, s.Runtime.Message
	case !s.NetworkReady:
		s.Reason, s.Message = s.Network.Reason, s.Network.Message
	}
	s.Features = &runtime.Features{SupplementalGroupsPolicy: true}
	for _, name := range append([]string{""}, slices.Sorted(slices.Values(w.cfg.Handlers))...) {
		s.Handlers = append(s.Handlers, runtime.Handler{Name: name, RecursiveReadOnlyMounts: true})
	}
	return s
}

// condition is ready where there is nothing to say against it.
func condition(why, reason string) runtime.Condition {
	if why == "" {
		return runtime.Condition{Known: true, Ready: true}
	}
	return runtime.Condition{Known: true, Reason: reason, Message: why}
}

// UpdateRuntimeConfig takes the node's pod CIDR.
func (w *World) UpdateRuntimeConfig(ctx context.Context, podCIDR string) error {
	return w.do(ctx, call{method: MethodUpdateRuntimeConfig}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.health.podCIDR = podCIDR
		return nil
	})
}

// PodCIDR is what UpdateRuntimeConfig last told; empty: nothing yet.
func (w *World) PodCIDR() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health.podCIDR
}

const (
	runtimeName           = "nodekit-world"
	runtimeVersion        = "1.0.0"
	reasonRuntimeNotReady = "ContainerdNotReady"
	reasonNetworkNotReady = "NetworkPluginNotReady"
)

// podLocked returns the record of a pod, made when it is new.
func (w *World) podLocked(uid, namespace, name string) *pod {
	p := w.pods[uid]
	if p == nil {
		p = &pod{uid: uid}
		w.pods[uid] = p
	}
	if p.name == "" {
		p.namespace, p.name = namespace, name
	}
	return p
}

// forgetLocked drops the record of a pod of which nothing is left.
func (w *World) forgetLocked(p *pod) {
	if len(p.sandboxes) == 0 && len(p.containers) == 0 && !p.forbidden {
		delete(w.pods, p.uid)
	}
}

// Forbid says that the pod was told to stop: a sandbox or container of it that
// is created by a later call breaks RuleStartAfterStop. A container that was
// created before may still be started, since that call may be on its way.
func (w *World) Forbid(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.podLocked(uid, "", "").forbidden = true
}

// Permit takes Forbid back: the pod may start again under its UID.
func (w *World) Permit(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[uid]; p != nil {
		p.forbidden = false
		w.forgetLocked(p)
	}
}
