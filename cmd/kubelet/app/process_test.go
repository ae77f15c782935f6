package app

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// SIGTERM ends the process with 0, and containers run on.
func TestSIGTERM(t *testing.T) {
	b := newBed(t)
	b.manifest(t)
	cmd, logs := child(t, "plain", b.flags(t, ""))
	b.awaitRunning(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, logs)
	}
	// What was under way when the signal came may still be told after it.
	if got := logs.String(); !strings.Contains(got, "Stopping kubelet; containers run on") {
		t.Errorf("no line of the stop:\n%s", got)
	}
	b.awaitRunning(t)
	if calls := b.world.Calls("StopContainer"); calls != 0 {
		t.Errorf("%d containers were stopped", calls)
	}
}

// A panic ends the process with a stack and another code than 0, and takes no
// log line along.
func TestPanics(t *testing.T) {
	for mode, code := range map[string]int{"panic in build": 2, "panic in a part": 1} {
		t.Run(mode, func(t *testing.T) {
			b := newBed(t)
			cmd, logs := child(t, mode, b.flags(t, ""))
			err := cmd.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != code {
				t.Errorf("%v, want exit code %d", err, code)
			}
			text := logs.String()
			for _, want := range []string{"Flag --container-runtime-endpoint has been deprecated", strings.Replace(mode, "panic", "boom", 1), "goroutine ", "main_test.go"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in the output:\n%s", want, text)
				}
			}
		})
	}
}
