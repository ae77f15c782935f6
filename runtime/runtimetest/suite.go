package runtimetest

import (
	"context"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/runtime"
)

// Sandboxes are the calls about sandboxes that Suite makes. Stop and remove
// succeed for what is stopped or gone.
type Sandboxes interface {
	RunSandbox(ctx context.Context, cfg runtime.SandboxConfig) (id string, err error)
	StopSandbox(ctx context.Context, id string) error
	RemoveSandbox(ctx context.Context, id string) error
}

// Containers are the calls about containers. StopContainer returns when the
// container has ended, at the latest after grace by a kill.
type Containers interface {
	CreateContainer(ctx context.Context, sandboxID string, cfg runtime.ContainerConfig, sandbox runtime.SandboxConfig) (id string, err error)
	StartContainer(ctx context.Context, id string) error
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
}

// Pods reads the runtime. A pod that it does not know is empty.
type Pods interface {
	LookPod(ctx context.Context, uid string) (runtime.Pod, error)
	ListPods(ctx context.Context) ([]runtime.Pod, error)
}

// Images are the calls about images. ImageStatus says whether it is there.
type Images interface {
	PullImage(ctx context.Context, pull runtime.ImagePull) (ref string, err error)
	ImageStatus(ctx context.Context, image runtime.ImageSpec) (runtime.ImageInfo, bool, error)
	ListImages(ctx context.Context) ([]runtime.ImageInfo, error)
}

// Subject is a runtime to hold against the contract. Sandboxes, Containers,
// Pods, Images, Image and MissingImage are required; usually one client is all
// four. A World as the subject must allow RuleImageMissing, since the suite
// creates a container from an image that is not there.
type Subject struct {
	Sandboxes  Sandboxes
	Containers Containers
	Pods       Pods
	Images     Images
	// Image can be pulled and has the sh, sleep, echo and true of a busybox.
	Image string
	// MissingImage is a well-formed name that can not be pulled.
	MissingImage string

	// CgroupParent is set in each sandbox, where the runtime wants one.
	CgroupParent string
	// LogDirectory exists and is writable for the runtime; empty: the cases
	// about logs are skipped.
	LogDirectory string
	// Hints has one reader, the suite; nil: the case about events is skipped.
	Hints <-chan runtime.Hint
	// ReopenLog makes the runtime open the log of a running container anew; nil:
	// the case is skipped.
	ReopenLog func(ctx context.Context, containerID string) error
	// KillSandbox ends a sandbox as a crash would; nil: the case is skipped.
	KillSandbox func(t *testing.T, uid, sandboxID string)
}

// Suite holds a runtime against what nodekit expects of one. open is called
// for each case and may return the same runtime again; the cases use pods of
// their own and remove them. It takes some ten seconds, mostly spent waiting.
func Suite(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, &bench{T: t, Subject: open(t)})
		})
	}
}

// SuiteInBubbles is Suite with each case in a synctest bubble of its own, so
// that no time passes: for runtimes in memory, which open makes anew.
func SuiteInBubbles(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.run(t, &bench{T: t, Subject: open(t)})
			})
		})
	}
}

type suiteCase struct {
	name string
	run  func(t *testing.T, b *bench)
}

func cases() []suiteCase {
	return []suiteCase{
		{"SandboxLife", sandboxLife},
		{"SandboxTakesItsContainersAlong", sandboxTakesContainers},
		{"SandboxDies", sandboxDies},
		{"CancelledRunLeavesNothing", cancelledRun},
		{"ContainerLife", containerLife},
		{"ContainerExits", containerExits},
		{"ContainerRestarts", containerRestarts},
		{"ContainerLogs", containerLogs},
		{"LogIsReopened", logIsReopened},
		{"StartFails", startFails},
		{"CreateFails", createFails},
		{"StopAsksFirst", stopAsksFirst},
		{"StopKillsAfterGrace", stopKillsAfterGrace},
		{"StopWithoutGraceKills", stopWithoutGrace},
		{"StopGivenUpCanBeRepeated", stopGivenUp},
		{"StopAndRemoveTwice", stopAndRemoveTwice},
		{"UnknownPodIsEmpty", unknownPod},
		{"List", listPods},
		{"ParallelPods", parallelPods},
		{"Hints", hintsArrive},
		{"ImageMissing", imageMissing},
		{"ImagePulledTwice", imagePulledTwice},
	}
}

// bench is one case at work.
type bench struct {
	*testing.T
	Subject
}

const (
	caseDeadline = 60 * time.Second
	pollEvery    = 20 * time.Millisecond

	// polite ends with code 7 when it is asked to, stubborn never.
	polite   = "trap 'exit 7' TERM; sleep 1000 & wait"
	stubborn = "trap '' TERM; sleep 1000"
)

// testPod is a pod of a case. It is removed when the case ends.
type testPod struct {
	*bench
	cfg       runtime.SandboxConfig
	sandboxID string
}

func (b *bench) config(name string) runtime.SandboxConfig {
	cfg := SandboxFor("suite", name, "suite-"+rand.Text(), 0)
	cfg.CgroupParent = b.CgroupParent
	cfg.LogDirectory = b.LogDirectory
	return cfg
}

// pod makes a sandbox.
func (b *bench) pod(name string) *testPod {
	b.Helper()
	p := &testPod{bench: b, cfg: b.config(name)}
	p.Cleanup(p.clear)
	p.runSandbox()
	return p
}

func (p *testPod) runSandbox() {
	p.Helper()
	id, err := p.Sandboxes.RunSandbox(p.ctx(), p.cfg)
	p.must(err, "run the sandbox")
	p.sandboxID = id
}

// ctx ends with the case; a runtime that does not answer fails it.
func (b *bench) ctx() context.Context {
	ctx, cancel := context.WithTimeout(b.Context(), caseDeadline)
	b.Cleanup(cancel)
	return ctx
}

func (b *bench) must(err error, what string) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

func (b *bench) pull() string {
	b.Helper()
	ref, err := b.Images.PullImage(b.ctx(), runtime.ImagePull{Spec: runtime.ImageSpec{Image: b.Image}})
	b.must(err, "pull "+b.Image)
	return ref
}

// create makes a container that runs a shell script.
func (p *testPod) create(name string, attempt uint32, script string) string {
	p.Helper()
	id, err := p.Containers.CreateContainer(p.ctx(), p.sandboxID, p.container(name, attempt, "sh", "-c", script), p.cfg)
	p.must(err, "create container "+name)
	return id
}

func (p *testPod) container(name string, attempt uint32, command ...string) runtime.ContainerConfig {
	p.Helper()
	cfg := ContainerFor(p.cfg, name, p.pull(), attempt, command...)
	cfg.Image.Requested = p.Image
	cfg.LogPath = p.cfg.UID + "_" + cfg.LogPath
	if p.LogDirectory == "" {
		cfg.LogPath = ""
	}
	return cfg
}

func (p *testPod) start(name string, attempt uint32, script string) string {
	p.Helper()
	id := p.create(name, attempt, script)
	p.must(p.Containers.StartContainer(p.ctx(), id), "start container "+name)
	return id
}

func (p *testPod) look() runtime.Pod {
	p.Helper()
	view, err := p.Pods.LookPod(p.ctx(), p.cfg.UID)
	p.must(err, "look at the pod")
	return view
}

// find looks at one container.
func (p *testPod) find(id string) runtime.Container {
	p.Helper()
	for _, c := range p.look().Containers {
		if c.ID == id {
			return c
		}
	}
	p.Fatalf("the runtime does not show container %s", id)
	return runtime.Container{}
}

// until looks until the container is in that state.
func (p *testPod) until(id string, state runtime.ContainerState) runtime.Container {
	p.Helper()
	var c runtime.Container
	p.eventually("container "+id+" is "+string(state), func() bool {
		c = p.find(id)
		return c.State == state
	})
	return c
}

func (b *bench) eventually(what string, is func() bool) {
	b.Helper()
	deadline := time.NewTimer(caseDeadline)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			b.Fatalf("waited %s in vain until %s", caseDeadline, what)
		}
	}
}

// settle gives a script time to set its traps: a shell that has not run them
// yet dies of, or ignores, the signal in its own way.
func (b *bench) settle() {
	timer := time.NewTimer(500 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
}

// clear removes the pod in the order of a sound agent.
func (p *testPod) clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), caseDeadline)
	defer cancel()
	view, err := p.Pods.LookPod(ctx, p.cfg.UID)
	if err != nil {
		p.Errorf("look at the pod to remove it: %v", err)
		return
	}
	for _, c := range view.Containers {
		if err := p.Containers.StopContainer(ctx, c.ID, 0); err != nil {
			p.Errorf("stop container %s at the end: %v", c.Name, err)
		}
	}
	for _, s := range view.Sandboxes {
		if err := p.Sandboxes.StopSandbox(ctx, s.ID); err != nil {
			p.Errorf("stop sandbox %s at the end: %v", s.ID, err)
		}
		if err := p.Sandboxes.RemoveSandbox(ctx, s.ID); err != nil {
			p.Errorf("remove sandbox %s at the end: %v", s.ID, err)
		}
	}
	if left, err := p.Pods.LookPod(ctx, p.cfg.UID); err != nil || !left.Empty() {
		p.Errorf("after the end the runtime shows %+v, error %v", left, err)
	}
}
