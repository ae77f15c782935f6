package execcheck

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"nodekit.dev/probe"
)

type ended struct {
	stdout, stderr string
	code           int32
	err            error
}

func (e ended) ExecSync(context.Context, string, []string, time.Duration) (stdout, stderr []byte, exitCode int32, err error) {
	return []byte(e.stdout), []byte(e.stderr), e.code, e.err
}

func TestCheck(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		run  ended
		want probe.Outcome
	}{
		"success":  {ended{stdout: "a"}, probe.Outcome{Result: probe.Success, Output: "a"}},
		"failure":  {ended{stdout: "a", stderr: "b", code: 2}, probe.Outcome{Result: probe.Failure, Output: "ab"}},
		"long":     {ended{stdout: strings.Repeat("x", 2*outputLimit), code: 1}, probe.Outcome{Result: probe.Failure, Output: strings.Repeat("x", outputLimit)}},
		"too slow": {ended{err: context.DeadlineExceeded}, probe.Outcome{Result: probe.Failure, Output: `command timed out: "cat /x" timed out after 1s`}},
		"broken":   {ended{err: broken}, probe.Outcome{Err: broken}},
	} {
		got := Check(t.Context(), Target{Exec: tc.run, Command: []string{"cat", "/x"}, Timeout: time.Second})
		if got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}
