package main

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/runtime"
)

// engine runs containers as processes. It is the node's Engine, its Watcher
// (watch.go) and the Execer of lifecycle handlers (exec.go). It remembers in
// memory alone, so its processes must not outlive it; an engine whose processes
// do would read them back from the host in List and Look.
type engine struct {
	hints  chan runtime.Hint
	closed chan struct{}
	waits  sync.WaitGroup // one for each process that runs

	mu        sync.Mutex
	made      int
	sandboxes map[string]*sandbox
	processes map[string]*process
}

// sandbox is no more than a name for the processes of one pod.
type sandbox struct {
	id      string
	cfg     runtime.SandboxConfig
	ready   bool
	created time.Time
}

// newEngine ties the end of all processes to the end of the agent.
func newEngine(lc nodefx.Lifecycle) *engine {
	e := &engine{
		hints: make(chan runtime.Hint), closed: make(chan struct{}),
		sandboxes: map[string]*sandbox{}, processes: map[string]*process{},
	}
	lc.Hold("processes", nil, e.close)
	return e
}

// close kills what a drain has left.
func (e *engine) close(context.Context) error {
	close(e.closed)
	e.mu.Lock()
	for _, p := range e.processes {
		p.signal(syscall.SIGKILL)
	}
	e.mu.Unlock()
	e.waits.Wait()
	return nil
}

func (e *engine) nextID(kind string) string {
	e.made++
	return fmt.Sprintf("%s-%d", kind, e.made)
}

// RunSandbox implements [node.Engine]. A sandbox of that pod and attempt that
// is there already is the one that an earlier, cancelled call has made.
func (e *engine) RunSandbox(_ context.Context, req node.RunSandboxRequest) (node.RunSandboxResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sandboxes {
		if s.cfg.UID == req.Config.UID && s.cfg.Attempt == req.Config.Attempt {
			return node.RunSandboxResult{SandboxID: s.id}, nil
		}
	}
	s := &sandbox{id: e.nextID("sandbox"), cfg: req.Config, ready: true, created: time.Now()}
	e.sandboxes[s.id] = s
	return node.RunSandboxResult{SandboxID: s.id}, nil
}

// StartContainer implements [node.Engine].
func (e *engine) StartContainer(_ context.Context, req node.StartContainerRequest) (node.StartContainerResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sandboxes[req.SandboxID]
	if s == nil || !s.ready {
		return node.StartContainerResult{}, fmt.Errorf("sandbox %s is not there", req.SandboxID)
	}
	p, err := startProcess(e.nextID("process"), s, req.Config)
	if err != nil {
		return node.StartContainerResult{}, err
	}
	e.processes[p.id] = p
	e.waits.Go(func() { e.watchOver(p) })
	return node.StartContainerResult{ContainerID: p.id}, nil
}

// StopContainer implements [node.Engine]: TERM, and KILL when the grace is over.
func (e *engine) StopContainer(ctx context.Context, req node.StopContainerRequest) error {
	e.mu.Lock()
	p := e.processes[req.ContainerID]
	e.mu.Unlock()
	if p == nil {
		return nil
	}
	if req.Grace > 0 {
		p.signal(syscall.SIGTERM)
	}
	grace := time.NewTimer(req.Grace)
	defer grace.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-grace.C:
		return p.kill(ctx)
	}
}

// StopSandbox implements [node.Engine].
func (e *engine) StopSandbox(ctx context.Context, req node.StopSandboxRequest) error {
	e.mu.Lock()
	var inside []*process
	if s := e.sandboxes[req.SandboxID]; s != nil {
		s.ready = false
	}
	for _, p := range e.processes {
		if p.sandbox.id == req.SandboxID {
			inside = append(inside, p)
		}
	}
	e.mu.Unlock()
	for _, p := range inside {
		if err := p.kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements [node.Engine].
func (e *engine) Remove(_ context.Context, req node.RemoveRequest) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sandboxes, req.SandboxID)
	for id, p := range e.processes {
		if id == req.ContainerID || p.sandbox.id == req.SandboxID {
			if !p.ended() {
				return fmt.Errorf("process %s still runs", id)
			}
			delete(e.processes, id)
		}
	}
	return nil
}
