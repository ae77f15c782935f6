package testbed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// process is a daemon that a test started. A nil process is one that is not running.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was waited for
}

type processConfig struct {
	program string
	args    []string
	env     []string
	log     string // file that its output is appended to
}

// startProcess starts a program in a process group of its own, so that Ctrl-C
// in a terminal reaches only the driver, which then stops things in order.
func startProcess(c processConfig) (*process, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(c.program, c.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// state says how it ended.
func (p *process) state() string {
	if p.alive() {
		return "running"
	}
	return p.cmd.ProcessState.String()
}

// kill ends it with SIGKILL and waits until it is gone.
func (p *process) kill(ctx context.Context) error { return p.end(ctx, syscall.SIGKILL) }

// end sends a signal and waits until the process is gone.
func (p *process) end(ctx context.Context, sig syscall.Signal) error {
	if !p.alive() {
		return nil
	}
	// An error here means that it ended in between, which done tells.
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s (pid %d) did not end on %v: %w", p.cmd.Path, p.pid(), sig, context.Cause(ctx))
	}
}

// tail returns the last lines of a file, or why it can not be read.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
