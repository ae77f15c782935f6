package csi

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"nodekit.dev/internal/atomicfile"
	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
)

// undone are volumes that are still to be unstaged.
type undone struct {
	mu    sync.Mutex
	known map[volumeKey]*leftover
	wake  chan struct{}
}

type leftover struct {
	staging staging
	fails   backoff.State
	busy    bool
}

// unstageRetry is the stock kubelet's back-off of volume operations.
func unstageRetry() backoff.Policy {
	return backoff.Policy{Base: 500 * time.Millisecond, Max: 2*time.Minute + 2*time.Second}
}

func (u *undone) add(key volumeKey, s staging, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.known[key]
	if one == nil {
		one = &leftover{staging: s}
		u.known[key] = one
	}
	if err != nil {
		one.fails = one.fails.Fail(unstageRetry(), time.Now(), err.Error())
	}
	u.kick()
}

func (u *undone) kick() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// retry is for a driver that has come.
func (u *undone) retry(driver string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, one := range u.known {
		if key.driver == driver {
			one.fails = backoff.State{}
		}
	}
	u.kick()
}

// due takes those whose time has come, and says how long until the next; 0: none
// waits.
func (u *undone) due(now time.Time) (keys []volumeKey, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, one := range u.known {
		if one.busy {
			continue
		}
		left := one.fails.Wait(now)
		if left == 0 {
			one.busy = true
			keys = append(keys, key)
		} else if wait == 0 || left < wait {
			wait = left
		}
	}
	return keys, wait
}

// done notes how it went; what failed in the same way as before is not logged.
func (u *undone) done(key volumeKey, err error) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.known[key]
	one.busy = false
	if err == nil {
		delete(u.known, key)
		return false
	}
	news = one.fails.Note != err.Error()
	one.fails = one.fails.Fail(unstageRetry(), time.Now(), err.Error())
	u.kick()
	return news
}

func (u *undone) stagingOf(key volumeKey) staging {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known[key].staging
}

// Run unstages what an earlier agent left staged and no pod uses, and what could
// not be unstaged when its last pod went, until ctx ends; it returns its error.
// What waits for a driver is done when that registers.
func (p *Plugin) Run(ctx context.Context) error {
	staged, err := p.Staged()
	if err != nil {
		p.log.WarnContext(ctx, "can not read which CSI volumes are staged", "err", err)
	}
	for _, s := range staged {
		p.undone.add(volumeKey{s.Driver, s.Handle}, s.staging, nil)
	}
	group := tasks.New(ctx)
	err = p.undo(group)
	group.Stop()
	return errors.Join(err, group.Wait())
}

func (p *Plugin) undo(group *tasks.Group) error {
	ctx := group.Context()
	for {
		keys, wait := p.undone.due(time.Now())
		for _, key := range keys {
			group.Go("csi-unstage", func(ctx context.Context) error {
				p.undoOne(ctx, key)
				return nil
			})
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer:
		case <-p.undone.wake:
		}
	}
}

func (p *Plugin) undoOne(ctx context.Context, key volumeKey) {
	release, err := p.locks.take(ctx, key)
	if err == nil {
		err = p.unstage(ctx, key, p.undone.stagingOf(key))
		release()
	}
	if p.undone.done(key, err) && ctx.Err() == nil {
		p.log.WarnContext(ctx, "a volume that no pod uses is still staged", "driver", key.driver, "volume", key.handle, "err", err)
	}
}

// StagedVolume is one that is staged, or at least was tried to.
type StagedVolume struct {
	Driver, Handle string
	// Attached says that it had to be attached to the node.
	Attached bool
	// Block says that it is staged as a device.
	Block bool

	staging staging
}

// Staged lists what is staged on the node, whether a pod uses it or not. It
// reads the host, never memory. A record that can not be read is left out.
func (p *Plugin) Staged() (all []StagedVolume, err error) {
	base := p.layout.base()
	dirs, err := names(base)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, dir := range dirs {
		inner, err := names(filepath.Join(base, dir))
		errs = append(errs, err)
		for _, name := range inner {
			s := staging{path: filepath.Join(base, dir, name, "globalmount"), record: filepath.Join(base, dir, name, recordFile)}
			if dir == devicesDir {
				s = p.layout.deviceStaging(name)
			}
			r, ok, err := readRecord(s.record)
			switch {
			case err != nil:
				p.log.Warn("the notes on a staged CSI volume can not be read", "path", s.record, "err", err)
			case ok:
				errs = append(errs, atomicfile.Sweep(filepath.Dir(s.record)))
				all = append(all, StagedVolume{Driver: r[keyDriver], Handle: r[keyHandle], Attached: r[keyAttached] == yes, Block: s.block, staging: s})
			}
		}
	}
	return all, errors.Join(errs...)
}
