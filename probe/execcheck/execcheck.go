package execcheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nodekit.dev/probe"
)

// Execer runs one command in a running container and waits for it.
type Execer interface {
	// ExecSync blocks until the command ended, ctx ended or timeout is over (0:
	// no timeout). The command is killed after timeout; that is an error which
	// errors.Is finds to be context.DeadlineExceeded, as the end of ctx is. An
	// exit code other than 0 is no error. Called concurrently.
	ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (Result, error)
}

// Result is how a command ended. That of package runtime/cri converts to it.
type Result struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Target is what to run.
type Target struct {
	ContainerID string
	// Command is run as it is, without a shell.
	Command []string
	// Timeout is what the Execer gives the command; 0 leaves ctx alone as a bound.
	Timeout time.Duration
}

// TargetOf is what a pod's exec handler asks for (ExecAction.command; variables
// in it are expanded by who makes the handler). It fails for a handler without a
// command and for a container that is not known to the runtime yet.
func TargetOf(t probe.Target) (Target, error) {
	switch {
	case t.Handler.Exec == nil:
		return Target{}, errors.New("the handler has no exec")
	case len(t.Handler.Exec.Command) == 0:
		return Target{}, errors.New("the exec handler has no command")
	case t.ContainerID == "":
		return Target{}, errors.New("the container has no ID yet")
	}
	return Target{ContainerID: t.ContainerID, Command: t.Handler.Exec.Command, Timeout: t.Timeout}, nil
}

// Check runs the command once. Exit code 0 is a Success; any other, and a
// command that took longer than its time, is a Failure. What else kept it from
// running is Unknown. It ends when ctx does, if the Execer keeps its promise,
// and is safe for concurrent use. The output is what the command wrote to
// stdout, then stderr, up to 10 KiB.
func Check(ctx context.Context, t Target, execer Execer) probe.Outcome {
	res, err := execer.ExecSync(ctx, t.ContainerID, t.Command, t.Timeout)
	switch {
	case err != nil && tookTooLong(ctx, err):
		return probe.Outcome{
			Result: probe.Failure,
			Output: fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(t.Command, " "), t.Timeout),
		}
	case err != nil:
		return probe.Outcome{Err: err}
	case res.ExitCode != 0:
		return probe.Outcome{Result: probe.Failure, Output: output(res)}
	}
	return probe.Outcome{Result: probe.Success, Output: output(res)}
}

// tookTooLong also asks ctx: not every runtime's error tells that it ended.
func tookTooLong(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded)
}

func output(res Result) string {
	out := res.Stdout[:min(len(res.Stdout), probe.OutputLimit)]
	rest := res.Stderr[:min(len(res.Stderr), probe.OutputLimit-len(out))]
	return string(out) + string(rest)
}
