package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long after the runtime opened a new log the old one is
	// read on, for a write that was already on its way.
	settleTime = 100 * time.Millisecond
	// lostEvents is when to look without an event: for file systems that have
	// none, and for events that got lost.
	lostEvents = 5 * time.Second
	// noEvents is the same where there is no watch at all.
	noEvents = time.Second
)

// follower waits at the end of a log for what comes next.
type follower struct {
	path  string
	open  opener
	ended <-chan struct{}
	over  bool // the container has ended: read to the end, then stop
	// settled is the source that was read on for settleTime.
	settled *source
	// read is up to when entries were read before the follower lost its place
	// and had to start again at an older file; zero: it never did.
	read time.Time

	watch  *fsnotify.Watcher // nil when the host has no watch to give
	events chan fsnotify.Event
	errs   chan error
	pause  time.Duration
}

func newFollower(req Request) *follower {
	f := &follower{path: req.Path, open: within(req.Within), ended: req.Ended, pause: noEvents}
	watch, err := fsnotify.NewWatcher()
	if err == nil {
		f.watch, f.events, f.errs = watch, watch.Events, watch.Errors
		if err = watch.Add(filepath.Dir(req.Path)); err == nil {
			f.pause = lostEvents
		}
	}
	if err != nil {
		req.Log.Warn("log is followed by polling", "path", req.Path, "err", err)
	}
	return f
}

func (f *follower) close() error {
	if f.watch == nil {
		return nil
	}
	return f.watch.Close()
}

// wait is called when src was read to its end. It returns the source to go on
// with (nil: the same), or false when nothing will come.
func (f *follower) wait(ctx context.Context, src *source, newest time.Time) (*source, bool, error) {
	if src.shrunk() {
		return nil, true, src.seek(0)
	}
	if path, after := f.successor(src, newest); path != "" {
		if f.settled != src {
			f.settled = src
			return nil, true, settle(ctx)
		}
		next, err := openSource(path, f.open)
		if errors.Is(err, os.ErrNotExist) { // compressed or rotated just now
			return nil, true, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("follow log: %w", err)
		}
		if again, _ := f.successor(src, newest); again != path {
			// It was rotated between the look and the opening: what was opened
			// is not what comes next.
			return nil, true, next.close()
		}
		next.after = after
		return next, true, nil
	}
	if f.over {
		return nil, false, nil
	}
	return nil, true, f.await(ctx)
}

// successor is the file to go on with when src was rotated away, and up to
// when its entries were read already. Empty: src is still the one, or the
// runtime has not opened a new one yet.
func (f *follower) successor(src *source, newest time.Time) (path string, after time.Time) {
	if src.is(f.path) {
		return "", time.Time{}
	}
	older, _, err := listRotated(f.path)
	if err != nil {
		return "", time.Time{} // the directory went: so did the container
	}
	ours := slices.IndexFunc(older, func(l rotated) bool { return src.is(l.path) })
	for i, l := range older {
		switch {
		case ours >= 0 && i > ours && l.plain != older[ours].plain:
			return l.path, f.read
		case ours < 0 && !newest.IsZero() && !l.stamp.Before(wallClock(newest)):
			// A slow reader's file was compressed or removed meanwhile. This
			// may be it or the one after it: what was read is left out.
			f.read = newest
			return l.path, f.read
		}
	}
	if _, err := os.Stat(f.path); err != nil {
		return "", time.Time{}
	}
	if ours < 0 {
		f.read = newest
	}
	return f.path, f.read
}

func settle(ctx context.Context) error {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await returns when something may have happened to the log.
func (f *follower) await(ctx context.Context) error {
	timer := time.NewTimer(f.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.events:
	case <-f.errs: //nolint:errcheck // events were lost; looking again is what there is to do
	case <-timer.C:
	case <-f.ended:
		f.ended, f.over = nil, true
	}
	return nil
}
