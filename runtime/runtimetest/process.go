package runtimetest

import (
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/runtime"
)

// ending is how a container ended, in the words of containerd.
type ending struct {
	code    int32
	reason  string
	message string
}

// The exit codes of processes that a signal ended, and of those that never ran.
const (
	codeKilled     = 128 + 9
	codeNotStarted = 128
	codeLost       = 255
)

var killed = ending{code: codeKilled, reason: "Error"}

func exited(code int32) ending {
	if code == 0 {
		return ending{reason: "Completed"}
	}
	return ending{code: code, reason: "Error"}
}

// beginLocked starts the process of a created container, or lets it fail.
func (w *World) beginLocked(c *container) error {
	err := c.does.StartError
	if err == nil {
		err = w.openLogLocked(c)
	}
	if err != nil {
		c.state, c.finished = runtime.ContainerExited, time.Now()
		c.end = ending{code: codeNotStarted, reason: "StartError", message: err.Error()}
		close(c.done)
		return status.Errorf(codes.Unknown, "failed to start container %q: %v", c.id, err)
	}
	c.state, c.started = runtime.ContainerRunning, time.Now()
	c.log.write(c.does.Output)
	w.emitLocked(EventStarted, c.sandbox, c.id)
	if c.does.RunFor > 0 {
		w.exitAfterLocked(c, c.does.RunFor, exited(c.does.ExitCode))
	}
	return nil
}

// exitAfterLocked lets the container end by itself, unless it ended before.
func (w *World) exitAfterLocked(c *container, d time.Duration, e ending) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exitLocked(c, e)
	})
}

// signalLocked is the stop signal.
func (w *World) signalLocked(c *container) {
	if c.does.IgnoresTERM {
		return
	}
	c.log.write(c.does.TermOutput)
	switch {
	case c.does.TermDelay > 0:
		w.exitAfterLocked(c, c.does.TermDelay, exited(c.does.TermCode))
	default:
		w.exitLocked(c, exited(c.does.TermCode))
	}
}

// exitLocked ends a running container.
func (w *World) exitLocked(c *container, e ending) {
	if c.state != runtime.ContainerRunning {
		return
	}
	c.state, c.finished, c.end = runtime.ContainerExited, time.Now(), e
	c.writeTerminationMessage()
	c.log.close()
	close(c.done)
	w.emitLocked(EventStopped, c.sandbox, c.id)
}

// writeTerminationMessage does what the process would: it writes to its
// termination log where the agent has mounted a file for it.
func (c *container) writeTerminationMessage() {
	path := c.cfg.Annotations[runtime.AnnotationTerminationMessagePath]
	if c.does.Message == "" || path == "" {
		return
	}
	for _, m := range c.cfg.Mounts {
		if m.ContainerPath != path || m.ReadOnly {
			continue
		}
		// A process that can not write its message ends all the same.
		if f, err := os.OpenFile(m.HostPath, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
			_, _ = f.WriteString(c.does.Message)
			_ = f.Close()
		}
	}
}

// Exit ends the running container of that name with the exit code. It says
// whether there was one.
func (w *World) Exit(uid, name string, code int32) bool { return w.endByName(uid, name, exited(code)) }

// OOMKill ends the running container of that name as the kernel's OOM killer
// does. It says whether there was one.
func (w *World) OOMKill(uid, name string) bool {
	return w.endByName(uid, name, ending{code: codeKilled, reason: "OOMKilled"})
}

func (w *World) endByName(uid, name string, e ending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.runningLocked(uid, name)
	if c != nil {
		w.exitLocked(c, e)
	}
	return c != nil
}

func (w *World) runningLocked(uid, name string) *container {
	p := w.pods[uid]
	if p == nil {
		return nil
	}
	for _, c := range p.containers {
		if c.cfg.Name == name && c.state == runtime.ContainerRunning {
			return c
		}
	}
	return nil
}
