package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/runtime"
)

// Service is the image service of the runtime. The default is runtime/cri.
// Both methods may block until ctx ends and are called concurrently.
type Service interface {
	// ImageStatus looks for an image; false without an error: it is not there.
	ImageStatus(ctx context.Context, spec runtime.ImageSpec) (runtime.ImageInfo, bool, error)
	// PullImage pulls and returns the ref to make containers with. It returns
	// soon after ctx ends.
	PullImage(ctx context.Context, pull runtime.ImagePull) (ref string, err error)
}

// PullAuth finds credentials for an image. It may block until ctx ends and is
// called concurrently.
type PullAuth interface {
	// Credentials returns what to try, in order. None: pull anonymously.
	Credentials(ctx context.Context, req Request) ([]runtime.ImageAuth, error)
}

// Config says how images are pulled.
type Config struct {
	// MaxParallel is how many pulls run at once on the node. 0: 5 (the
	// default of DefaultConfig); below 0: no limit; 1: one after the other.
	MaxParallel int
	// BackoffBase doubles per failure of one image in one pod up to
	// BackoffMax. 0: 10 s and 300 s, as the stock kubelet.
	BackoffBase time.Duration
	BackoffMax  time.Duration
	// Auth is nil for anonymous pulls.
	Auth PullAuth
	// Log is nil for no logs.
	Log *slog.Logger
	// Observer's functions may be nil.
	Observer Observer
}

// DefaultConfig is what New makes of the zero Config.
func DefaultConfig() Config {
	return Config{MaxParallel: 5, BackoffBase: 10 * time.Second, BackoffMax: 300 * time.Second}
}

// Observer is told what happens to each request. Its functions must not block.
type Observer struct {
	// Present: the image was there and the policy wants no pull.
	Present func(req Request, image runtime.ImageInfo)
	// PullStarted: the request joins or queues for a pull.
	PullStarted func(req Request)
	// PullDone follows each PullStarted, unless the request was cancelled.
	PullDone func(req Request, done PullDone)
}

// PullDone is how one request for a pull ended.
type PullDone struct {
	Ref string
	// Size of the image in bytes; 0 when it failed or is not known.
	Size uint64
	// Took is the time of the pull itself, Waited what this request spent
	// altogether, queueing included.
	Took   time.Duration
	Waited time.Duration
	// Shared is true when another request had begun the pull.
	Shared bool
	Err    error
}

// Request asks for one container's image.
type Request struct {
	PodUID       string
	PodNamespace string
	PodName      string
	// PodCreated decides who comes first when the cap is reached: the oldest
	// pod. Zero: the time of the request.
	PodCreated time.Time
	Container  string
	Image      string
	// Policy is Always, IfNotPresent (also when empty) or Never.
	Policy  string
	Sandbox runtime.SandboxConfig
	// Observer is told about this request alone, beside Config.Observer. Its
	// functions may be nil.
	Observer Observer
}

// Puller pulls images. Use New; all methods may be used concurrently.
type Puller struct {
	cfg     Config
	service Service
	queue   *queue

	mu       sync.Mutex
	failures *backoff.Map[failureKey]
	flights  map[imageKey]*flight
}

// failureKey: each pod backs off on its own, so that a new pod tries at once
// what was mended since another one failed.
type failureKey struct{ podUID, image string }

// New checks the configuration.
func New(cfg Config, service Service) (*Puller, error) {
	if service == nil {
		return nil, errors.New("images: no image service")
	}
	def := DefaultConfig()
	if cfg.MaxParallel == 0 {
		cfg.MaxParallel = def.MaxParallel
	}
	if cfg.BackoffBase == 0 {
		cfg.BackoffBase = def.BackoffBase
	}
	if cfg.BackoffMax == 0 {
		cfg.BackoffMax = def.BackoffMax
	}
	if cfg.BackoffBase < 0 || cfg.BackoffMax < cfg.BackoffBase {
		return nil, fmt.Errorf("images: back-off from %v to %v: want 0 < base <= max", cfg.BackoffBase, cfg.BackoffMax)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Puller{
		cfg:      cfg,
		service:  service,
		queue:    newQueue(cfg.MaxParallel),
		failures: backoff.NewMap[failureKey](backoff.Policy{Base: cfg.BackoffBase, Max: cfg.BackoffMax}),
		flights:  map[imageKey]*flight{},
	}, nil
}

// Pull returns when the image is present, with the ref that the runtime knows
// it by, or with an error that says why not.
func (p *Puller) Pull(ctx context.Context, req Request) (string, error) {
	if req.PodCreated.IsZero() {
		req.PodCreated = time.Now()
	}
	image, err := WithDefaultTag(req.Image)
	if err != nil {
		return "", invalidName(req.Image, err)
	}
	spec := runtime.ImageSpec{Image: image, RuntimeHandler: req.Sandbox.RuntimeHandler}
	for {
		ref, err := p.try(ctx, req, spec)
		if !errors.Is(err, errLookAgain) {
			return ref, err
		}
	}
}

// errLookAgain: a pull of the same image with other credentials ended, so the
// image may be there now.
var errLookAgain = errors.New("look again")

func (p *Puller) try(ctx context.Context, req Request, spec runtime.ImageSpec) (string, error) {
	info, present, err := p.service.ImageStatus(ctx, spec)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", inspectFailed(req.Image, err)
	}
	todo, err := judge(req.Policy, present)
	if err != nil {
		return "", reasoned.New(ReasonPull, err)
	}
	switch todo {
	case usePresent:
		p.tellPresent(req, info)
		return info.ID, nil
	case refuseAbsent:
		return "", neverPull(req.Image)
	case pullIt:
	}
	if err := p.stillBackingOff(req); err != nil {
		return "", err
	}
	auths, err := p.credentials(ctx, req)
	if err != nil {
		return "", p.failed(ctx, req, err)
	}
	return p.pull(ctx, req, runtime.ImagePull{Spec: spec, Sandbox: req.Sandbox}, auths)
}

// pull shares a flight and tells the observer about it.
func (p *Puller) pull(ctx context.Context, req Request, pull runtime.ImagePull, auths []runtime.ImageAuth) (string, error) {
	begun := time.Now()
	f, place := p.join(ctx, req, pull, auths)
	if place == outside {
		return "", p.sitOut(ctx, f)
	}
	p.tellStarted(req)
	select {
	case <-f.done:
	case <-ctx.Done():
		p.leave(f)
		return "", ctx.Err()
	}
	done := PullDone{Ref: f.ref, Size: f.size, Took: f.took, Waited: time.Since(begun), Shared: place == guest}
	if f.err != nil {
		done.Err = p.failed(ctx, req, f.err)
	} else {
		p.succeeded(req)
	}
	p.tellDone(req, done)
	return done.Ref, done.Err
}

// sitOut waits for a flight that this request can not share.
func (p *Puller) sitOut(ctx context.Context, f *flight) error {
	select {
	case <-f.done:
		return errLookAgain
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Puller) credentials(ctx context.Context, req Request) ([]runtime.ImageAuth, error) {
	var auths []runtime.ImageAuth
	if p.cfg.Auth != nil {
		found, err := p.cfg.Auth.Credentials(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("credentials for image %q: %w", req.Image, err)
		}
		auths = found
	}
	if len(auths) == 0 {
		auths = []runtime.ImageAuth{{}}
	}
	return auths, nil
}

func (p *Puller) stillBackingOff(req Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.failures.Get(failureKey{req.PodUID, req.Image})
	if wait := state.Wait(time.Now()); wait > 0 {
		return backingOff(req.Image, state.Note, wait)
	}
	return nil
}

func (p *Puller) failed(ctx context.Context, req Request, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := failureKey{req.PodUID, req.Image}
	e := pullFailed(req.Image, err, 0)
	wait := p.failures.Fail(key, time.Now(), e.Reason()+": "+e.Error())
	return e.After(wait)
}

func (p *Puller) succeeded(req Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures.Succeed(failureKey{req.PodUID, req.Image})
}
