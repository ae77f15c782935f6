package logs

import (
	"context"
	"sync"
	"time"
)

// packer compresses in the background: a set of logs with something to
// compress, at most one compression per log at a time.
type packer struct {
	cfg      Config
	compress func(ctx context.Context, path string) ([]string, error)

	mu    sync.Mutex
	queue []string
	state map[string]packState
	wake  chan struct{}
}

type packState int

const (
	packQueued packState = iota + 1
	packBusy
	packAgain // asked for while busy
)

func newPacker(cfg Config, compress func(context.Context, string) ([]string, error)) *packer {
	return &packer{cfg: cfg, compress: compress, state: map[string]packState{}, wake: make(chan struct{}, 1)}
}

// add asks for one log. It never blocks.
func (p *packer) add(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state[path] {
	case packQueued, packAgain:
	case packBusy:
		p.state[path] = packAgain
	default:
		p.enqueue(path)
	}
}

func (p *packer) enqueue(path string) {
	p.state[path] = packQueued
	p.queue = append(p.queue, path)
	p.signal()
}

func (p *packer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *packer) take() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return "", false
	}
	path := p.queue[0]
	p.queue = p.queue[1:]
	p.state[path] = packBusy
	if len(p.queue) > 0 {
		p.signal() // for the other workers
	}
	return path, true
}

func (p *packer) done(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state[path] == packAgain {
		p.enqueue(path)
		return
	}
	delete(p.state, path)
}

// run is one worker.
func (p *packer) run(ctx context.Context) error {
	for {
		path, ok := p.take()
		if !ok {
			select {
			case <-p.wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		p.pack(ctx, path)
		p.done(path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (p *packer) pack(ctx context.Context, path string) {
	begun := time.Now()
	files, err := p.compress(ctx, path)
	if ctx.Err() != nil {
		return // what was left is swept at the next start
	}
	if ignoreMissing(err) != nil { // a log may go with its container
		p.cfg.Log.Warn("older logs can not be compressed", "path", path, "err", err)
	}
	if p.cfg.Observer.Compressed != nil && (len(files) > 0 || err != nil) {
		p.cfg.Observer.Compressed(path, time.Since(begun), err)
	}
	// A log that grew over its number of files while one was being compressed.
	if err := removeExcess(path, p.cfg.MaxFiles-1); ignoreMissing(err) != nil {
		p.cfg.Log.Warn("old logs can not be removed", "path", path, "err", err)
	}
}
