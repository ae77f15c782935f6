package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"nodekit.dev/runtime"
)

// maxMessage is as much of a termination message as the stock kubelet reads.
const maxMessage = 4096

// process is one container. What stands below done may be read once it is closed.
type process struct {
	id      string
	sandbox *sandbox
	cfg     runtime.ContainerConfig
	started time.Time
	cmd     *exec.Cmd
	log     string // path
	message string // path of the termination message

	done     chan struct{}
	finished time.Time
	exit     syscall.WaitStatus
	said     string
}

// startProcess starts the command in a process group of its own, with its
// output in the pod's log directory.
func startProcess(id string, s *sandbox, cfg runtime.ContainerConfig) (*process, error) {
	p := &process{id: id, sandbox: s, cfg: cfg, log: filepath.Join(s.cfg.LogDirectory, cfg.LogPath), done: make(chan struct{})}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o750); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own
	p.message = hostPath(cfg, cfg.Annotations[runtime.AnnotationTerminationMessagePath])
	argv := append(append([]string(nil), cfg.Command...), cfg.Args...)
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir, p.cmd.Env = cfg.WorkingDir, environment(cfg, p.message)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.started = time.Now()
	return p, nil
}

// hostPath is where on the host a file is that a container would see as path.
func hostPath(cfg runtime.ContainerConfig, path string) string {
	for _, m := range cfg.Mounts {
		if m.ContainerPath == path {
			return m.HostPath
		}
	}
	return ""
}

// environment is the pod's, and where to write the termination message, which a
// process does not find at /dev/termination-log.
func environment(cfg runtime.ContainerConfig, message string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "TERMINATION_LOG=" + message}
	for _, v := range cfg.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// wait returns when the process has ended and its group with it.
func (p *process) wait() {
	_ = p.cmd.Wait() // what it says is in the state
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.finished = time.Now()
	p.exit, _ = p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	p.said = head(p.message)
	close(p.done)
}

func head(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "" // it has said nothing
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxMessage))
	return string(text)
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal goes to the whole group, unless the process has ended.
func (p *process) signal(s syscall.Signal) {
	if p.cmd.Process.Signal(syscall.Signal(0)) == nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, s) // it has just ended
	}
}

func (p *process) kill(ctx context.Context) error {
	p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
