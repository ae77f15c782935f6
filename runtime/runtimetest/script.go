package runtimetest

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// AtOnce as RunFor ends a container right after its start.
const AtOnce = time.Nanosecond

// Behaviour is what a container does. The zero value runs until it is stopped
// and then ends at once with exit code 0.
type Behaviour struct {
	// RunFor is how long the container runs by itself; 0: until it is stopped.
	RunFor   time.Duration
	ExitCode int32
	// IgnoresTERM makes the container run until it is killed; otherwise it ends
	// TermDelay after the stop signal with exit code TermCode.
	IgnoresTERM bool
	TermDelay   time.Duration
	TermCode    int32
	// CreateError and StartError make those calls fail.
	CreateError error
	StartError  error
	// Message is written to the termination log.
	Message string
	// Output goes to the container's log at its start, TermOutput upon the stop
	// signal unless that is ignored, one line each (Config.WriteLogs).
	Output     []Line
	TermOutput []Line
	// Exec answers ExecSync; nil: the few commands that Script understands.
	Exec func(command []string) ExecResult
}

// Line is one line of a container's output.
type Line struct {
	Stderr bool
	Text   string
}

// ExecResult is what a command in a container gave.
type ExecResult struct {
	Stdout, Stderr string
	ExitCode       int32
}

// Script says what containers do. The key is "namespace/pod/container", a
// container's name or an image as the pod's spec names it; the first that fits
// wins. Given several behaviours, attempt n does the nth, and later attempts
// do the last.
//
// A container without a script does what its command says, as far as the World
// understands it: "sh -c" with exit, sleep, echo, trap on TERM, true, false
// and wait; sleep, true and false by themselves. Like a real PID 1, sleep
// ignores the stop signal. Everything else runs until it is stopped.
func (w *World) Script(key string, first Behaviour, next ...Behaviour) {
	w.scripts.mu.Lock()
	defer w.scripts.mu.Unlock()
	byKey := maps.Clone(w.scripts.byKey)
	byKey[key] = append([]Behaviour{first}, next...)
	w.scripts.byKey = byKey
}

type scripts struct {
	mu    sync.Mutex
	byKey map[string][]Behaviour // replaced whole
}

func newScripts() scripts { return scripts{byKey: map[string][]Behaviour{}} }

func (s *scripts) of(c *container) Behaviour {
	s.mu.Lock()
	byKey := s.byKey
	s.mu.Unlock()
	for _, key := range []string{
		c.pod.namespace + "/" + c.pod.name + "/" + c.cfg.Name,
		c.cfg.Name,
		c.cfg.Image.Requested,
		c.cfg.Image.Ref,
	} {
		if acts := byKey[key]; len(acts) > 0 {
			return acts[min(int(c.cfg.Attempt), len(acts)-1)]
		}
	}
	return interpret(append(append([]string(nil), c.cfg.Command...), c.cfg.Args...))
}

var errNoSuchFile = errors.New("exec: no such file or directory")
