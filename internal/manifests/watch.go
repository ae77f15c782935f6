package manifests

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quietTime is how long a directory must be quiet after a change before it
	// is read, so that a file is not read while it is being written; busyTime
	// bounds the wait.
	quietTime = 100 * time.Millisecond
	busyTime  = time.Second
)

// Watch tells when to read a directory, or a single file, again. Use
// [NewWatch]. For one goroutine.
type Watch struct {
	path    string
	log     *slog.Logger
	watcher *fsnotify.Watcher // nil: the host has none to give
	target  string
	inode   os.FileInfo
}

// NewWatch makes a watch on a clean absolute path, to be closed after use.
// Without an inotify instance to have, Wait still ends in time.
func NewWatch(path string, log *slog.Logger) *Watch {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("directory is read by period only", "source", "file", "path", path, "err", err)
	}
	return &Watch{path: path, log: log, watcher: watcher}
}

// Close frees what the watch holds.
func (w *Watch) Close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // nothing is lost that could be told
	}
}

// Follow watches the directory, or the one above where it is a file or not
// there yet. Call it before each reading, so that nothing falls in between.
func (w *Watch) Follow() {
	if w.watcher == nil {
		return
	}
	target := w.path
	info, err := os.Stat(w.path)
	if err != nil || !info.IsDir() {
		target = filepath.Dir(w.path)
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
		w.log.Warn("directory is read by period only", "source", "file", "path", target, "err", err)
		return
	}
	w.target, w.inode = target, info
}

// Wait returns when the directory changed and is quiet again, or when it is
// time. The error is the context's.
func (w *Watch) Wait(ctx context.Context, atMost time.Duration) error {
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
func (w *Watch) concerns(name string) bool {
	if filepath.Dir(name) == w.path {
		return !temporary(filepath.Base(name))
	}
	return name == w.path
}
