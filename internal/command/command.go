// Package command runs the programs of the host that the agent needs, such as
// iptables. Parts declare the one method that they call, and get a Runner:
//
//	exit, output, err := command.Runner{}.Run(ctx, "iptables", "-S")
//	if err != nil { ... }  // it did not run at all
//	if exit != 0 { ... }   // it ran and says no; output holds what it said
package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Runner runs programs that it finds in the process's PATH, with its
// environment and no input. Safe for concurrent use.
type Runner struct{}

// waitDelay is how long a program that was killed may keep its output open
// through its children.
const waitDelay = time.Second

// Run returns when the program ended, or soon after ctx did, when it is killed.
// Output is what it wrote to stdout and stderr, in order. Err says why the
// program could not be run to its end; a program that is not there gives an
// error that is exec.ErrNotFound.
func (Runner) Run(ctx context.Context, name string, args ...string) (exit int, output []byte, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = waitDelay
	output, err = cmd.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, output, nil
	case ctx.Err() != nil:
		return -1, output, fmt.Errorf("%s: %w", name, ctx.Err())
	case errors.As(err, &ended) && ended.Exited():
		return ended.ExitCode(), output, nil
	}
	return -1, output, fmt.Errorf("%s: %w", name, err)
}
