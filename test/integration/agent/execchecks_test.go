package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/handlers"
	"nodekit.dev/node/wire"
	"nodekit.dev/probe"
	"nodekit.dev/probe/checks"
	"nodekit.dev/probe/execcheck"
	"nodekit.dev/runtime/cri"
)

// realExecer is the agent's own way to run commands.
type realExecer struct{ handlers.Execer }

func (e realExecer) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (execcheck.Result, error) {
	res, err := e.Execer.ExecSync(ctx, id, cmd, timeout)
	return execcheck.Result(res), err
}

// execChecks: what exec checks make of real commands in a real container.
func execChecks(t *testing.T, e *env) {
	e.apply(t, newPod("exec-checks", shell("main", untilTerm)))
	pod := e.until(t, "exec-checks", ready)
	status, _ := statusOf(pod, "main")
	client, err := cri.New(cri.Config{Endpoint: "unix://" + e.bed.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	check := checks.Default(checks.Config{Exec: realExecer{wire.Execer(client)}})[probe.Exec]
	for name, c := range map[string]struct {
		id      string
		command []string
		timeout time.Duration
		result  probe.Result
		output  func(string) bool
	}{
		"works":             {"", []string{"echo", "fine"}, 30 * time.Second, probe.Success, func(s string) bool { return s == "fine\n" }},
		"fails":             {"", []string{"sh", "-c", "echo out; echo err >&2; exit 3"}, 30 * time.Second, probe.Failure, func(s string) bool { return s == "out\nerr\n" }},
		"too long":          {"", []string{"sleep", "1000"}, time.Second, probe.Failure, func(s string) bool { return s == `command timed out: "sleep 1000" timed out after 1s` }},
		"much":              {"", []string{"sh", "-c", "yes | head -c 100000"}, 30 * time.Second, probe.Success, func(s string) bool { return len(s) == probe.OutputLimit }},
		"no command":        {"", []string{"no-such-command"}, 30 * time.Second, probe.Unknown, nil},
		"no such container": {strings.Repeat("0", 64), []string{"true"}, 30 * time.Second, probe.Unknown, nil},
	} {
		if c.id == "" {
			c.id = bareID(status)
		}
		// As the probe manager gives it.
		ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
		began := time.Now()
		got := check(ctx, probe.Target{
			ContainerID: c.id, Timeout: c.timeout, Handler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: c.command}},
		})
		cancel()
		if got.Result != c.result || (got.Err != nil) != (c.result == probe.Unknown) || (c.output != nil && !c.output(got.Output)) {
			t.Errorf("%s: %v %.100q, %v", name, got.Result, got.Output, got.Err)
		}
		if took := time.Since(began); took > c.timeout+20*time.Second || errors.Is(got.Err, context.Canceled) {
			t.Errorf("%s: took %v, %v", name, took, got.Err)
		}
	}
}
