package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// Execer runs one command in a running container and waits for it.
type Execer interface {
	// ExecSync blocks until the command ended, ctx ended or timeout is over (0:
	// no timeout); the command is killed after timeout. An exit code other than
	// 0 is no error. Called concurrently.
	ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (ExecResult, error)
}

// ExecResult is how a command ended.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Config are the settings of a Runner.
type Config struct {
	// UserAgent is sent with HTTP requests that do not set their own.
	UserAgent string
}

// Default is the stock kubelet's of v1.37.
func Default() Config { return Config{UserAgent: "kube-lifecycle/1.37"} }

// Validate names what is wrong with the configuration.
func (c Config) Validate() error {
	if c.UserAgent == "" {
		return errors.New("UserAgent: must be set")
	}
	return nil
}

// Runner runs handlers. It is safe for concurrent use.
type Runner struct {
	cfg    Config
	exec   Execer
	client *http.Client
	log    *slog.Logger
}

var _ podactor.HookRunner = (*Runner)(nil)

// New checks the configuration.
func New(cfg Config, exec Execer, log *slog.Logger) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("handlers: %w", err)
	}
	return &Runner{cfg: cfg, exec: exec, client: newClient(), log: log}, nil
}

// RunHandler runs one handler and returns when it ended, or when ctx did.
func (r *Runner) RunHandler(ctx context.Context, req podactor.HandlerRequest) error {
	switch h := req.Handler; {
	case h == nil:
		return nil
	case h.Exec != nil:
		return r.runExec(ctx, req.ContainerID, h.Exec.Command)
	case h.HTTPGet != nil:
		return r.runHTTPGet(ctx, req)
	case h.Sleep != nil:
		return runSleep(ctx, h.Sleep)
	default:
		return errors.New("invalid handler: a lifecycle hook is one of exec, httpGet and sleep")
	}
}

// outputTail is how much of a failed command's output the error quotes, bytes.
const outputTail = 1024

func (r *Runner) runExec(ctx context.Context, containerID string, cmd []string) error {
	var timeout time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		if timeout = time.Until(deadline); timeout <= 0 {
			return fmt.Errorf("exec %q: %w", cmd, context.DeadlineExceeded)
		}
	}
	res, err := r.exec.ExecSync(ctx, containerID, cmd, timeout)
	if err != nil {
		return fmt.Errorf("exec %q: %w", cmd, err)
	}
	if res.ExitCode != 0 {
		return fmt.Errorf("exec %q: exit code %d, output: %q", cmd, res.ExitCode, tail(res))
	}
	return nil
}

// tail is the end of what the command said, its errors last.
func tail(res ExecResult) []byte {
	all := append(append([]byte(nil), res.Stdout...), res.Stderr...)
	return all[max(0, len(all)-outputTail):]
}

func runSleep(ctx context.Context, sleep *corev1.SleepAction) error {
	timer := time.NewTimer(lifecycle.Seconds(sleep.Seconds))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sleep of %d s cut short: %w", sleep.Seconds, context.Cause(ctx))
	}
}
