// Package execcheck checks that a command in a container succeeds.
package execcheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nodekit.dev/probe"
)

// outputLimit is how much of a command's output users are shown, bytes.
const outputLimit = 10 << 10

// Execer runs one command in a running container and waits for it.
type Execer interface {
	// ExecSync blocks until the command ended, ctx ended or timeout is over (0:
	// no timeout); the command is killed after timeout, which is an error whose
	// chain has context.DeadlineExceeded or a method Timeout that says true. An
	// exit code other than 0 is no error. Called concurrently.
	ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error)
}

// Target is what to run.
type Target struct {
	Exec        Execer
	ContainerID string
	Command     []string
	// Timeout is what the runtime gives the command; 0 leaves the context alone
	// as a bound.
	Timeout time.Duration
}

// Check runs the command once: exit code 0 is a Success, any other and a
// command that took too long are Failures. Other errors are Unknown. It ends
// when ctx does, if the Execer keeps its promise.
func Check(ctx context.Context, t Target) probe.Outcome {
	stdout, stderr, code, err := t.Exec.ExecSync(ctx, t.ContainerID, t.Command, t.Timeout)
	if tookTooLong(err) {
		return probe.Outcome{
			Result: probe.Failure,
			Output: fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(t.Command, " "), t.Timeout),
		}
	}
	if err != nil {
		return probe.Outcome{Err: err}
	}
	all := append(append([]byte(nil), stdout...), stderr...)
	result := probe.Success
	if code != 0 {
		result = probe.Failure
	}
	return probe.Outcome{Result: result, Output: string(all[:min(len(all), outputLimit)])}
}

func tookTooLong(err error) bool {
	var timed interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timed) && timed.Timeout())
}
