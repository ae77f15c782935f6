package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"nodekit.dev/node/handlers"
)

// ExecSync implements [handlers.Execer]: a command beside the process, in its
// directory and environment.
func (e *engine) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (handlers.ExecResult, error) {
	e.mu.Lock()
	p := e.processes[id]
	e.mu.Unlock()
	if p == nil || p.ended() {
		return handlers.ExecResult{}, fmt.Errorf("process %s does not run", id)
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var stdout, stderr bytes.Buffer
	beside := exec.CommandContext(ctx, cmd[0], cmd[1:]...)
	beside.Dir, beside.Env = p.cmd.Dir, p.cmd.Env
	beside.Stdout, beside.Stderr = &stdout, &stderr
	err := beside.Run()
	result := handlers.ExecResult{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		result.ExitCode = int32(failed.ExitCode()) //nolint:gosec // 0 to 255
		return result, nil
	}
	return result, err
}
