package runtimetest

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/runtime"
)

// Exec runs a command in a running container: its Behaviour.Exec, or the
// commands that Script understands. It takes as long as the command sleeps.
func (w *World) Exec(ctx context.Context, id string, command []string) (ExecResult, error) {
	var result ExecResult
	err := w.do(ctx, w.containerCall(MethodExec, id), func() error {
		does, err := w.running(id)
		if err != nil {
			return err
		}
		if does.Exec != nil {
			result = does.Exec(command)
			return nil
		}
		act := interpret(command)
		if act.StartError != nil {
			return status.Errorf(codes.Unknown, "failed to exec in container: %v", act.StartError)
		}
		wait := act.RunFor
		if wait == 0 {
			wait = forever
		}
		if err := w.pause(ctx, wait, nil); err != nil {
			return err
		}
		result = ExecResult{Stdout: text(act.Output, false), Stderr: text(act.Output, true), ExitCode: act.ExitCode}
		return nil
	})
	return result, err
}

func text(lines []Line, stderr bool) string {
	all := ""
	for _, l := range lines {
		if l.Stderr == stderr {
			all += l.Text + "\n"
		}
	}
	return all
}

func (w *World) running(id string) (Behaviour, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.containers[id]
	switch {
	case c == nil:
		return Behaviour{}, notFound("failed to find container %q", id)
	case c.state != runtime.ContainerRunning:
		return Behaviour{}, status.Errorf(codes.Unknown, "container is in state %s", c.state)
	}
	return c.does, nil
}

// ReopenLog opens the container's log file anew after a rotation.
func (w *World) ReopenLog(ctx context.Context, id string) error {
	return w.do(ctx, w.containerCall(MethodReopenLog, id), func() error {
		if _, err := w.running(id); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if c := w.containers[id]; c != nil {
			return c.log.reopen()
		}
		return nil
	})
}
