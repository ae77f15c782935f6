package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/node"
)

const (
	// DefaultPeriod is the stock fileCheckFrequency and httpCheckFrequency.
	DefaultPeriod = 20 * time.Second
	// quietTime is how long a directory must be quiet after a change before it
	// is read, so that a file is not read while it is being written; busyTime
	// bounds the wait.
	quietTime = 100 * time.Millisecond
	busyTime  = time.Second
)

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
	w := newDirWatch(d.cfg)
	defer w.close()
	k := newKeeper(d.cfg.Config, d.Name())
	retry := backoff.Policy{Base: time.Second, Max: d.cfg.Period}
	var waits backoff.State
	for {
		w.follow(d.cfg.Path)
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
		if err := w.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// scan reads all manifests. After an error nothing may be sent.
func (d *Dir) scan(ctx context.Context, k *keeper) error {
	paths, err := manifests(d.cfg.Path)
	if err != nil {
		k.unreachable(d.cfg.Path, ReasonUnreachable, err)
		return err
	}
	k.keep(paths)
	k.begin()
	for _, path := range paths {
		data, err := readManifest(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && !dangling(path):
			delete(k.items, path) // removed since it was listed
			continue
		case errors.Is(err, errTooLarge):
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

// manifests lists the files of a directory that may be manifests, sorted. A
// path that does not exist has none; that of a file is that file.
func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, linkErr := os.Lstat(path); linkErr == nil {
			// A link whose target is away, such as a disk that is not mounted
			// yet: a slip, not a wish to have no pods.
			return nil, fmt.Errorf("%s: the link leads nowhere: %w", path, err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name := filepath.Join(path, e.Name()); !temporary(e.Name()) && !isDir(name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// temporary says that a name is not a manifest's but of a hidden or
// half-written file of an editor or tool.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".swx") || strings.HasPrefix(name, "#")
}

// dangling says that a name is there, as a link to what is not: perhaps not yet.
func dangling(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// dirWatch tells when to read a directory again.
type dirWatch struct {
	cfg     DirConfig
	watcher *fsnotify.Watcher // nil: the host has none to give
	target  string
	inode   os.FileInfo
}

func newDirWatch(cfg DirConfig) *dirWatch {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		cfg.Log.Warn("directory is read by period only", "source", "file", "path", cfg.Path, "period", cfg.Period, "err", err)
	}
	return &dirWatch{cfg: cfg, watcher: watcher}
}

func (w *dirWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // nothing is lost that could be told
	}
}

// follow watches the directory, or the one above where it is a file or not
// there yet. It is called before each scan, so that nothing falls in between.
func (w *dirWatch) follow(path string) {
	if w.watcher == nil {
		return
	}
	target := path
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		target = filepath.Dir(path)
		info, err = os.Stat(target)
	}
	if err != nil || (w.target == target && w.inode != nil && os.SameFile(w.inode, info)) {
		return
	}
	if w.target != "" {
		_ = w.watcher.Remove(w.target) // gone by itself when the directory is
	}
	w.target, w.inode = "", nil
	if err := w.watcher.Add(target); err != nil {
		w.cfg.Log.Warn("directory is read by period only", "source", "file", "path", target, "period", w.cfg.Period, "err", err)
		return
	}
	w.target, w.inode = target, info
}

// wait returns when the directory changed and is quiet again, or when it is
// time. The error is the context's.
func (w *dirWatch) wait(ctx context.Context, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	var events chan fsnotify.Event
	var errs chan error
	if w.watcher != nil {
		events, errs = w.watcher.Events, w.watcher.Errors
	}
	var busySince time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-errs: //nolint:errcheck // events were lost; reading all is what there is to do
			timer.Reset(quietTime)
		case event := <-events:
			if !w.concerns(event.Name) {
				continue
			}
			now := time.Now()
			if busySince.IsZero() {
				busySince = now
			}
			timer.Reset(max(0, min(quietTime, busyTime-now.Sub(busySince))))
		}
	}
}

// concerns says that an event may change what there is to read.
func (w *dirWatch) concerns(name string) bool {
	if filepath.Dir(name) == w.cfg.Path {
		return !temporary(filepath.Base(name))
	}
	return name == w.cfg.Path
}
