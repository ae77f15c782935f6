package execcheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/probe"
)

// execer answers one command of one container.
type execer struct {
	result Result
	err    error
}

func (e execer) ExecSync(_ context.Context, id string, cmd []string, timeout time.Duration) (Result, error) {
	if id != "c1" || strings.Join(cmd, "|") != "cat|/x y" || timeout != time.Second {
		return Result{}, fmt.Errorf("ExecSync(%s, %q, %s)", id, cmd, timeout)
	}
	return e.result, e.err
}

func TestCheck(t *testing.T) {
	broken := errors.New("no running task found")
	long := []byte(strings.Repeat("o", probe.OutputLimit-1))
	for name, tc := range map[string]struct {
		ended execer
		want  probe.Outcome
	}{
		"success":     {execer{result: Result{Stdout: []byte("a"), Stderr: []byte("b")}}, probe.Outcome{Result: probe.Success, Output: "ab"}},
		"silence":     {execer{}, probe.Outcome{Result: probe.Success}},
		"failure":     {execer{result: Result{Stdout: []byte("a"), Stderr: []byte("b"), ExitCode: 2}}, probe.Outcome{Result: probe.Failure, Output: "ab"}},
		"by signal":   {execer{result: Result{ExitCode: 137}}, probe.Outcome{Result: probe.Failure}},
		"CRI-O's end": {execer{result: Result{Stderr: []byte("command timed out"), ExitCode: -1}}, probe.Outcome{Result: probe.Failure, Output: "command timed out"}},
		"long":        {execer{result: Result{Stdout: append(long, "xyz"...)}}, probe.Outcome{Result: probe.Success, Output: string(long) + "x"}},
		"long, both":  {execer{result: Result{Stdout: long, Stderr: []byte("ee"), ExitCode: 1}}, probe.Outcome{Result: probe.Failure, Output: string(long) + "e"}},
		"too slow": {
			execer{err: fmt.Errorf("ExecSync: %w", context.DeadlineExceeded)},
			probe.Outcome{Result: probe.Failure, Output: `command timed out: "cat /x y" timed out after 1s`},
		},
		"broken":    {execer{result: Result{Stdout: []byte("a")}, err: broken}, probe.Outcome{Err: broken}},
		"cancelled": {execer{err: context.Canceled}, probe.Outcome{Err: context.Canceled}},
	} {
		got := Check(t.Context(), Target{ContainerID: "c1", Command: []string{"cat", "/x y"}, Timeout: time.Second}, tc.ended)
		if got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// A runtime that only says that it gave up is believed to have had no time.
func TestDeadlineWithAnErrorThatDoesNotTell(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	got := Check(ctx, Target{ContainerID: "c1", Command: []string{"cat", "/x y"}, Timeout: time.Second}, execer{err: errors.New("stream closed")})
	if want := `command timed out: "cat /x y" timed out after 1s`; got.Result != probe.Failure || got.Output != want {
		t.Errorf("%+v", got)
	}
}

func TestTargetOf(t *testing.T) {
	command := &corev1.ExecAction{Command: []string{"cat", "/x"}}
	for name, tc := range map[string]struct {
		id      string
		handler corev1.ProbeHandler
		ok      bool
	}{
		"a command":       {"c1", corev1.ProbeHandler{Exec: command}, true},
		"no ID yet":       {"", corev1.ProbeHandler{Exec: command}, false},
		"no command":      {"c1", corev1.ProbeHandler{Exec: &corev1.ExecAction{}}, false},
		"not an exec one": {"c1", corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}, false},
	} {
		got, err := TargetOf(probe.Target{ContainerID: tc.id, Handler: tc.handler, Timeout: time.Second})
		if (err == nil) != tc.ok || tc.ok && (got.ContainerID != "c1" || strings.Join(got.Command, " ") != "cat /x" || got.Timeout != time.Second) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
