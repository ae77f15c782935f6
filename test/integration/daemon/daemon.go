// Package daemon runs the long-lived programs of a test (containerd, agents, a
// control plane) and ends them the hard way.
//
//	d, err := daemon.Start(daemon.Config{Program: "/usr/bin/containerd", Log: "/tmp/containerd.log"})
//	...
//	err = d.Kill(ctx)
//
// # Rules for callers
//
// A *Daemon that is nil is one that is not running, so that the zero value of a
// field is good for all methods. A program outlives the test when nobody ends
// it: package testbed finds such by their arguments.
package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// Config says what to run.
type Config struct {
	Program string
	Args    []string
	Env     []string // nil: the caller's
	Log     string   // file that its output is appended to
	// Namespace is the network namespace to run in, as `ip netns` names it;
	// empty: the caller's. Mounts and all else are shared with the caller.
	Namespace string
}

// Daemon is a program that was started. Its methods are safe for concurrent use.
type Daemon struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was waited for
}

// Start starts a program in a process group of its own, so that Ctrl-C in a
// terminal reaches only the driver, which then stops things in order.
func Start(c Config) (*Daemon, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd := c.command()
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &Daemon{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	return d, nil
}

// command uses nsenter and not ip netns exec, which would give the program a
// mount namespace of its own: then what the agent mounts, the runtime would not
// see. nsenter becomes the program, with the same process ID.
func (c Config) command() *exec.Cmd {
	if c.Namespace == "" {
		return exec.Command(c.Program, c.Args...)
	}
	return exec.Command("nsenter", slices.Concat([]string{"--net=/run/netns/" + c.Namespace, "--", c.Program}, c.Args)...)
}

// PID is its process ID while it runs.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Alive says that it runs.
func (d *Daemon) Alive() bool {
	if d == nil {
		return false
	}
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// State says how it ended.
func (d *Daemon) State() string {
	if d == nil {
		return "never started"
	}
	if d.Alive() {
		return "running"
	}
	return d.cmd.ProcessState.String()
}

// ExitCode is that of a program that has ended; -1 when a signal ended it.
func (d *Daemon) ExitCode() int { return d.cmd.ProcessState.ExitCode() }

// Done is closed when the program has ended.
func (d *Daemon) Done() <-chan struct{} { return d.done }

// Kill ends it with SIGKILL and waits until it is gone.
func (d *Daemon) Kill(ctx context.Context) error { return d.End(ctx, syscall.SIGKILL) }

// End sends a signal and waits until the program is gone.
func (d *Daemon) End(ctx context.Context, sig syscall.Signal) error {
	if !d.Alive() {
		return nil
	}
	// An error here means that it ended in between, which done tells.
	_ = d.cmd.Process.Signal(sig)
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s (pid %d) did not end on %v: %w", d.cmd.Path, d.PID(), sig, context.Cause(ctx))
	}
}

// Tail returns the last lines of a file, or why it can not be read.
func Tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
