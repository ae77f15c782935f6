package command_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"nodekit.dev/internal/command"
)

func TestRun(t *testing.T) {
	exit, out, err := command.Runner{}.Run(t.Context(), "sh", "-c", "echo said; echo no >&2; exit 3")
	if exit != 3 || string(out) != "said\nno\n" || err != nil {
		t.Errorf("exit %d, output %q, error %v", exit, out, err)
	}
	if _, _, err := (command.Runner{}).Run(t.Context(), "no-such-program"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, _, err := (command.Runner{}).Run(t.Context(), "sh", "-c", "kill -9 $$"); err == nil || !strings.Contains(err.Error(), "sh: signal: killed") {
		t.Errorf("a program that was killed: %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err := command.Runner{}.Run(ctx, "sleep", "60")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func Example() {
	exit, output, err := command.Runner{}.Run(context.Background(), "expr", "1", "+", "1")
	fmt.Printf("%d %s%v\n", exit, output, err)
	// Output:
	// 0 2
	// <nil>
}
