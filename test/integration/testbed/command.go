package testbed

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// run runs a command to its end and returns what it printed on stdout. Its
// stderr is part of the error.
func run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

func command(ctx context.Context, name string, args ...string) (string, error) {
	return run(exec.CommandContext(ctx, name, args...))
}
