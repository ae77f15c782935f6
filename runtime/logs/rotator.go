package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nodekit.dev/internal/tasks"
)

// Log names the log of one running container.
type Log struct {
	ContainerID string
	Path        string // absolute
}

// Containers tells which logs to watch over.
type Containers interface {
	// RunningLogs lists the logs of the containers that run now. It may block
	// until ctx ends; one call at a time.
	RunningLogs(ctx context.Context) ([]Log, error)
}

// Reopener makes the runtime open a container's log anew, after it was moved.
// The default is runtime/cri.
type Reopener interface {
	// ReopenContainerLog returns when the runtime writes to a new file. It may
	// block until ctx ends; called concurrently for different containers.
	ReopenContainerLog(ctx context.Context, containerID string) error
}

// Config says when logs are rotated.
type Config struct {
	// MaxSize in bytes, from which on a log is rotated. 0: 10 MiB.
	MaxSize int64
	// MaxFiles is how many files a log has at most, itself included; at least
	// 2. 0: 5.
	MaxFiles int
	// Workers is how many logs are compressed at once; renaming and reopening
	// wait for no compression. 0: 1.
	Workers int
	// Interval is how often all logs are looked at, whatever events said.
	// 0: 10 s.
	Interval time.Duration
	// ReopenTimeout bounds one call of the runtime. 0: 2 min.
	ReopenTimeout time.Duration
	// Log is nil for no logs.
	Log *slog.Logger
	// Observer's functions may be nil.
	Observer Observer
}

// DefaultConfig is what NewRotator makes of the zero Config: the stock values.
func DefaultConfig() Config {
	return Config{MaxSize: 10 << 20, MaxFiles: 5, Workers: 1, Interval: 10 * time.Second, ReopenTimeout: 2 * time.Minute}
}

// Observer is told what the Rotator did. Its functions must not block and are
// called concurrently.
type Observer struct {
	Rotated    func(Rotation)
	Compressed func(path string, took time.Duration, err error)
}

// Rotation is one rotation, or the attempt of one.
type Rotation struct {
	Log
	To   string // what the log is called now
	Size int64  // bytes when it was found too large
	Took time.Duration
	Err  error
}

func (c Config) withDefaults() Config {
	def := DefaultConfig()
	if c.MaxSize == 0 {
		c.MaxSize = def.MaxSize
	}
	if c.MaxFiles == 0 {
		c.MaxFiles = def.MaxFiles
	}
	if c.Workers == 0 {
		c.Workers = def.Workers
	}
	if c.Interval == 0 {
		c.Interval = def.Interval
	}
	if c.ReopenTimeout == 0 {
		c.ReopenTimeout = def.ReopenTimeout
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate says what is wrong with the configuration; zeros are fine.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.MaxSize < 0:
		return fmt.Errorf("MaxSize %d: must be positive", c.MaxSize)
	case c.MaxFiles < 2:
		return fmt.Errorf("MaxFiles %d: must be at least 2", c.MaxFiles)
	case c.Workers < 1:
		return fmt.Errorf("Workers %d: must be positive", c.Workers) //nolint:staticcheck // the name of a field
	case c.Interval < 0 || c.ReopenTimeout < 0:
		return errors.New("Interval and ReopenTimeout must be positive") //nolint:staticcheck // names of fields
	}
	return nil
}

const (
	// rotationsAtOnce bounds the calls of the runtime, which are short.
	rotationsAtOnce = 16
	// stopGrace is what a call of the runtime gets after ctx ended.
	stopGrace = 5 * time.Second
)

// Rotator keeps the logs of running containers below a size. Use NewRotator.
type Rotator struct {
	cfg        Config
	containers Containers
	reopener   Reopener
	refresh    chan struct{}
	slots      chan struct{} // rotations at once
	newGrowth  func() (growth, error)
	compress   func(ctx context.Context, path string) ([]string, error)
}

// NewRotator checks the configuration.
func NewRotator(cfg Config, containers Containers, reopener Reopener) (*Rotator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	if containers == nil || reopener == nil {
		return nil, errors.New("logs: no containers to watch or nothing to reopen their logs with")
	}
	return &Rotator{
		cfg:        cfg.withDefaults(),
		containers: containers,
		reopener:   reopener,
		refresh:    make(chan struct{}, 1),
		slots:      make(chan struct{}, rotationsAtOnce),
		newGrowth:  newInotify,
		compress:   compressOlder,
	}, nil
}

// Refresh makes Run list the containers now, such as after one was started.
// It never blocks.
func (r *Rotator) Refresh() {
	select {
	case r.refresh <- struct{}{}:
	default:
	}
}

// Run rotates until ctx ends, then waits for what is under way.
func (r *Rotator) Run(ctx context.Context) error {
	g := tasks.New(ctx)
	w := &watch{
		cfg:     r.cfg,
		tracked: map[string]*tracked{},
		lists:   make(chan []Log),
		results: make(chan Rotation),
		growth:  r.openGrowth(),
	}
	w.packer = newPacker(r.cfg, r.compress)
	g.Go("log lister", func(ctx context.Context) error { return r.list(ctx, w.lists) })
	for range r.cfg.Workers {
		g.Go("log compressor", w.packer.run)
	}
	g.Go("log rotator", func(ctx context.Context) error {
		return w.run(ctx, func(log Log, size int64) {
			g.Go("rotate log", func(ctx context.Context) error { return r.rotate(ctx, log, size, w) })
		})
	})
	err := errors.Join(g.Wait(), w.growth.close())
	return errors.Join(err, ctx.Err())
}

func (r *Rotator) openGrowth() growth {
	g, err := r.newGrowth()
	if err != nil {
		r.cfg.Log.Warn("logs are looked at by interval only", "interval", r.cfg.Interval, "err", err)
		return noGrowth{}
	}
	return g
}

// list tells which containers run, each interval and when Refresh says so. It
// has its own task, so that a slow runtime holds up no rotation.
func (r *Rotator) list(ctx context.Context, out chan<- []Log) error {
	ticker := time.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	for {
		logs, err := r.containers.RunningLogs(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.cfg.Log.Warn("running containers can not be listed for log rotation", "err", err)
		default:
			select {
			case out <- logs:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-ticker.C:
		case <-r.refresh:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errNotBegun = errors.New("rotation not begun: the agent stops")

// atOnce rotates when few enough others do. What has begun is finished even
// when the agent stops, within stopGrace.
func (r *Rotator) atOnce(ctx context.Context, log Log) (string, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return "", errNotBegun
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.ReopenTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(stopGrace, cancel)
	})()
	return rotateOne(undo, r.reopener, log, time.Now())
}

// rotate does one rotation and tells the watch.
func (r *Rotator) rotate(ctx context.Context, log Log, size int64, w *watch) error {
	begun := time.Now()
	to, err := r.atOnce(ctx, log)
	if errors.Is(err, errNotBegun) {
		return ctx.Err()
	}
	if err == nil {
		if err := removeExcess(log.Path, r.cfg.MaxFiles-1); err != nil {
			r.cfg.Log.Warn("old logs can not be removed", "path", log.Path, "err", err)
		}
	}
	result := Rotation{Log: log, To: to, Size: size, Took: time.Since(begun), Err: err}
	if r.cfg.Observer.Rotated != nil {
		r.cfg.Observer.Rotated(result)
	}
	if err != nil {
		r.cfg.Log.Error("log rotation failed", "path", log.Path, "container", log.ContainerID, "size", size, "err", err)
	} else {
		r.cfg.Log.Debug("log rotated", "path", log.Path, "container", log.ContainerID, "size", size, "to", to)
	}
	w.packer.add(log.Path)
	select {
	case w.results <- result:
	case <-ctx.Done():
	}
	return nil
}
