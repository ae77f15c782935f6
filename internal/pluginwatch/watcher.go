package pluginwatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
)

// The types of plugins, as they name themselves.
const (
	CSI    = "CSIPlugin"
	DRA    = "DRAPlugin"
	Device = "DevicePlugin"
)

// Registration is what a plugin says of itself.
type Registration struct {
	Type string
	Name string
	// Endpoint is where its work is done; that of the registration, where the
	// plugin did not name one.
	Endpoint string
	// Versions of its API that it supports.
	Versions []string
	// Socket is where it registered.
	Socket string
}

// Handler takes the plugins of one type. Its methods are called concurrently
// for different sockets, in turn for one; two sockets may name one plugin.
type Handler interface {
	// Register may block until ctx ends. What it says is told to the plugin; after
	// an error it is called again.
	Register(ctx context.Context, r Registration) error
	// Unregister says that the socket is gone, or made anew. It follows a
	// Register that succeeded, and must not block.
	Unregister(r Registration)
}

// Config says where plugins register.
type Config struct {
	// Dir is absolute. It is made where it is missing.
	Dir string
	// Retry is the back-off after failures; zero: 100 ms, doubling up to a minute.
	Retry backoff.Policy
	// CallTimeout bounds one call of a plugin; zero: 10 s.
	CallTimeout time.Duration
}

// Watcher finds plugins. Use New.
type Watcher struct {
	cfg      Config
	handlers map[string]Handler
	log      *slog.Logger
	ran      atomic.Bool

	// What follows is Run's own.
	watch   *fsnotify.Watcher
	group   *tasks.Group
	sockets map[string]*socket
}

// New checks the configuration.
func New(cfg Config, handlers map[string]Handler, log *slog.Logger) (*Watcher, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("plugin registry: Dir %q must be an absolute path", cfg.Dir)
	}
	if cfg.Retry == (backoff.Policy{}) {
		cfg.Retry = backoff.Policy{Base: 100 * time.Millisecond, Max: time.Minute}
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 10 * time.Second
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	cfg.Dir = filepath.Clean(cfg.Dir)
	return &Watcher{cfg: cfg, handlers: handlers, log: log, sockets: map[string]*socket{}}, nil
}

// Run watches until ctx ends, and returns its error. It may be called once.
func (w *Watcher) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return errors.New("plugin registry: Run was called before")
	}
	var err error
	if w.watch, err = fsnotify.NewWatcher(); err != nil {
		return fmt.Errorf("plugin registry: %w", err)
	}
	defer func() { _ = w.watch.Close() }() // nothing of it is needed any more
	w.group = tasks.New(ctx)
	err = w.follow(ctx)
	w.group.Stop()
	return errors.Join(err, w.group.Wait())
}

// follow looks around once, and then at what inotify names.
func (w *Watcher) follow(ctx context.Context) error {
	if err := w.look(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-w.watch.Events:
			if err := w.heed(event); err != nil {
				return err
			}
		case err := <-w.watch.Errors:
			w.log.Warn("the plugin registry may have missed something and looks again", "dir", w.cfg.Dir, "err", err)
			if err := w.look(); err != nil {
				return err
			}
		}
	}
}

// look goes through everything: what is new is registered, what is gone is
// forgotten.
func (w *Watcher) look() error {
	if err := os.MkdirAll(w.cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("plugin registry: %w", err)
	}
	for _, dir := range []string{filepath.Dir(w.cfg.Dir), w.cfg.Dir} {
		if err := w.watch.Add(dir); err != nil {
			return fmt.Errorf("plugin registry: watching %s: %w", dir, err)
		}
	}
	for path := range w.sockets {
		if _, ok := identify(path); !ok {
			w.gone(path)
		}
	}
	w.lookIn(w.cfg.Dir)
	return nil
}

// lookIn is for a folder that is watched by now, so that nothing that comes
// meanwhile is missed.
func (w *Watcher) lookIn(dir string) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.log.Warn("can not read a folder of the plugin registry", "dir", dir, "err", err)
	}
	for _, entry := range list {
		w.found(filepath.Join(dir, entry.Name()))
	}
}

// heed acts on one event. A name that was removed, even if there is one again,
// is no longer what it was. That the folder itself is gone is told by the one
// above it: open sockets keep its inode for a while.
func (w *Watcher) heed(event fsnotify.Event) error {
	removed := event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename)
	switch {
	case event.Name == w.cfg.Dir && removed:
		w.gone(event.Name)
		_ = w.watch.Remove(event.Name) // it may have gone with the folder
		return w.look()
	case !strings.HasPrefix(event.Name, w.cfg.Dir+"/"):
		return nil // a neighbour of the folder
	case removed:
		w.gone(event.Name)
	}
	w.found(event.Name)
	return nil
}

// found looks at one name.
func (w *Watcher) found(path string) {
	if strings.HasPrefix(filepath.Base(path), ".") {
		return
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		w.gone(path)
	case info.IsDir():
		if err := w.watch.Add(path); err != nil {
			w.log.Warn("can not watch a folder of the plugin registry", "dir", path, "err", err)
		}
		w.lookIn(path)
	case info.Mode().Type() == fs.ModeSocket:
		w.socket(path)
	}
}

// socket begins with a socket that is new.
func (w *Watcher) socket(path string) {
	id, ok := identify(path)
	known := w.sockets[path]
	if !ok || known != nil && known.id == id {
		return
	}
	w.gone(path)
	s := &socket{watcher: w, path: path, id: id, before: w.ending(path), ended: make(chan struct{})}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(w.group.Context())
	w.sockets[path] = s
	w.group.Go("plugin-registration", func(context.Context) error {
		s.run(ctx)
		return nil
	})
}

// ending is the end of who had that path before; nil: nobody.
func (w *Watcher) ending(path string) <-chan struct{} {
	if known := w.sockets[path]; known != nil {
		return known.ended
	}
	return nil
}

// gone ends what was there under that name and, where it was a folder, below it.
// Its entry stays until the next of that name: that one waits for its end.
func (w *Watcher) gone(path string) {
	for known, s := range w.sockets {
		if known != path && !strings.HasPrefix(known, path+"/") {
			continue
		}
		s.cancel()
		s.id = identity{}
		select {
		case <-s.ended:
			delete(w.sockets, known)
		default:
		}
	}
}
