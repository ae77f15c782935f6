package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/manifests"
	"nodekit.dev/node"
)

// DefaultPeriod is the stock fileCheckFrequency and httpCheckFrequency.
const DefaultPeriod = 20 * time.Second

// DirConfig says which directory to read.
type DirConfig struct {
	Config
	// Path is a directory, or a single manifest.
	Path string
	// Period is how often it is read, whatever events said. 0: 20 s.
	Period time.Duration
}

// Dir is a directory of manifests. Use NewDir.
type Dir struct {
	cfg DirConfig
}

// NewDir checks the configuration.
func NewDir(cfg DirConfig) (*Dir, error) {
	var err error
	if cfg.Config, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(cfg.Path) {
		return nil, fmt.Errorf("source: path %q: must be absolute", cfg.Path)
	}
	cfg.Path = filepath.Clean(cfg.Path)
	if cfg.Period < 0 {
		return nil, fmt.Errorf("source: period %v: must be positive", cfg.Period)
	}
	if cfg.Period == 0 {
		cfg.Period = DefaultPeriod
	}
	return &Dir{cfg: cfg}, nil
}

// Name is "file".
func (d *Dir) Name() string { return "file" }

// Run sends the pods of the directory until ctx ends.
func (d *Dir) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	w := manifests.NewWatch(d.cfg.Path, d.cfg.Log)
	defer w.Close()
	k := newKeeper(d.cfg.Config, d.Name())
	retry := backoff.Policy{Base: time.Second, Max: d.cfg.Period}
	var waits backoff.State
	for {
		w.Follow()
		wait := d.cfg.Period
		if err := d.scan(ctx, k); err == nil {
			waits = backoff.State{}
			if update, changed := k.changed(); changed {
				select {
				case updates <- update:
				case <-ctx.Done():
				}
			}
		} else if ctx.Err() == nil {
			waits = waits.Fail(retry, time.Now(), err.Error())
			wait = waits.Delay
		}
		if err := w.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

// scan reads all manifests. After an error nothing may be sent.
func (d *Dir) scan(ctx context.Context, k *keeper) error {
	paths, err := manifests.List(d.cfg.Path)
	if err != nil {
		k.unreachable(d.cfg.Path, ReasonUnreachable, err)
		return err
	}
	k.keep(paths)
	k.begin()
	for _, path := range paths {
		data, err := manifests.Read(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && !manifests.Dangling(path):
			delete(k.items, path) // removed since it was listed
			continue
		case errors.Is(err, manifests.ErrTooLarge):
			k.failed(path, ReasonTooLarge, err)
			continue
		case err != nil:
			k.failed(path, ReasonUnreadable, err)
			continue
		}
		o := origin{source: d.Name(), location: path, suffix: true, tolerates: true}
		if err := k.manifest(ctx, path, data, o); err != nil {
			if ctx.Err() == nil {
				k.unreachable(path, ReasonNotAdopted, err)
			}
			return err
		}
	}
	return nil
}
