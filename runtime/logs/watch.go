package logs

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// growth tells that a log which was quiet is written to. Each arm gives at
// most one event, so that a chatty container costs no event per write.
type growth interface {
	// arm asks for one event for that path; an error leaves it to the interval.
	arm(path string) error
	disarm(path string)
	events() <-chan fsnotify.Event
	// errors says that events were lost.
	errors() <-chan error
	close() error
}

// noGrowth is for hosts that have no watch to give.
type noGrowth struct{}

func (noGrowth) arm(string) error              { return nil }
func (noGrowth) disarm(string)                 {}
func (noGrowth) events() <-chan fsnotify.Event { return nil }
func (noGrowth) errors() <-chan error          { return nil }
func (noGrowth) close() error                  { return nil }

// tracked is what the watch knows of one log.
type tracked struct {
	log      Log
	size     int64
	at       time.Time // of size; zero: never looked
	next     time.Time // when to look again; zero: when it grows or by interval
	armed    bool
	rotating bool
	holdOff  time.Time // after a failed rotation
}

// watch decides when which log is looked at and rotated. Its state belongs to
// run's goroutine.
type watch struct {
	cfg     Config
	tracked map[string]*tracked // by path
	lists   chan []Log
	results chan Rotation
	growth  growth
	packer  *packer
	noWatch bool // logged that the host has no more watches
}

// run looks at logs and starts rotations until ctx ends.
func (w *watch) run(ctx context.Context, rotate func(Log, int64)) error {
	timer := time.NewTimer(w.cfg.Interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case logs := <-w.lists:
			w.replace(logs)
			w.lookAll(rotate)
		case event := <-w.growth.events():
			w.grew(event.Name)
		case err := <-w.growth.errors():
			w.cfg.Log.Debug("log events lost", "err", err)
			w.lookAll(rotate)
		case res := <-w.results:
			w.rotated(res)
		case <-timer.C:
			w.lookDue(rotate)
		}
		timer.Reset(w.untilDue())
	}
}

// replace takes the list of running containers.
func (w *watch) replace(logs []Log) {
	running := map[string]bool{}
	for _, log := range logs {
		running[log.Path] = true
		t := w.tracked[log.Path]
		if t == nil {
			w.tracked[log.Path] = &tracked{log: log}
			w.packer.add(log.Path) // what an earlier life left
			continue
		}
		t.log = log
	}
	for path, t := range w.tracked {
		if !running[path] && !t.rotating {
			w.disarm(t)
			delete(w.tracked, path)
		}
	}
}

func (w *watch) lookAll(rotate func(Log, int64)) {
	now := time.Now()
	for _, t := range w.tracked {
		w.look(t, now, rotate)
	}
}

func (w *watch) lookDue(rotate func(Log, int64)) {
	now := time.Now()
	for _, t := range w.tracked {
		if !t.next.IsZero() && !t.next.After(now) {
			w.look(t, now, rotate)
		}
	}
}

// look reads the size of a log and decides: rotate it, look again soon, or
// wait until it grows.
func (w *watch) look(t *tracked, now time.Time, rotate func(Log, int64)) {
	if t.rotating || now.Before(t.holdOff) {
		return
	}
	info, err := os.Stat(t.log.Path)
	missing := errors.Is(err, os.ErrNotExist)
	switch {
	case missing && w.interrupted(t.log.Path), err == nil && info.Size() >= w.cfg.MaxSize:
		t.rotating, t.next = true, time.Time{}
		w.disarm(t)
		size := int64(0)
		if !missing {
			size = info.Size()
		}
		rotate(t.log, size)
		return
	case err != nil:
		t.next = time.Time{} // not made yet, or gone: the interval looks again
		return
	}
	grown, over := info.Size()-t.size, now.Sub(t.at)
	known := !t.at.IsZero()
	t.size, t.at = info.Size(), now
	if known && grown != 0 {
		w.disarm(t)
		t.next = now.Add(nextLook(t.size, grown, w.cfg.MaxSize, over))
		return
	}
	t.next = time.Time{}
	w.arm(t)
}

// interrupted says that a log was renamed and never reopened: the agent died
// in between, and the runtime still writes to the renamed file.
func (w *watch) interrupted(path string) bool {
	older, _, err := listRotated(path)
	return err == nil && len(older) > 0
}

func (w *watch) grew(path string) {
	t := w.tracked[path]
	if t == nil || t.rotating {
		return
	}
	w.disarm(t)
	if t.next.IsZero() {
		t.next = time.Now().Add(firstLook)
	}
}

func (w *watch) rotated(res Rotation) {
	t := w.tracked[res.Path]
	if t == nil {
		return
	}
	now := time.Now()
	t.rotating, t.size, t.at = false, 0, now
	if res.Err != nil {
		t.holdOff = now.Add(w.cfg.Interval)
		t.next = t.holdOff
		return
	}
	t.next = now.Add(firstLook)
}

func (w *watch) arm(t *tracked) {
	if t.armed {
		return
	}
	if err := w.growth.arm(t.log.Path); err != nil {
		if !w.noWatch {
			w.noWatch = true
			w.cfg.Log.Warn("log is looked at by interval only", "path", t.log.Path, "interval", w.cfg.Interval, "err", err)
		}
		return
	}
	t.armed = true
	// What was written between the look and the arming gave no event.
	if info, err := os.Stat(t.log.Path); err != nil || info.Size() != t.size {
		w.grew(t.log.Path)
	}
}

func (w *watch) disarm(t *tracked) {
	if t.armed {
		w.growth.disarm(t.log.Path)
		t.armed = false
	}
}

// untilDue is when the next log is due.
func (w *watch) untilDue() time.Duration {
	now := time.Now()
	wait := w.cfg.Interval
	for _, t := range w.tracked {
		if !t.next.IsZero() && !t.rotating {
			wait = min(wait, t.next.Sub(now))
		}
	}
	return max(0, wait)
}
