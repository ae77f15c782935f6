package execcheck_test

import (
	"context"
	"fmt"
	"time"

	"nodekit.dev/probe/execcheck"
)

// empty is a container without files.
type empty struct{}

func (empty) ExecSync(_ context.Context, _ string, cmd []string, _ time.Duration) (execcheck.Result, error) {
	return execcheck.Result{Stderr: []byte(cmd[0] + ": no such file"), ExitCode: 1}, nil
}

// The end of a command as the outcome of a check.
func Example() {
	target := execcheck.Target{ContainerID: "c1", Command: []string{"cat", "/ready"}, Timeout: time.Second}
	fmt.Println(execcheck.Check(context.Background(), target, empty{}).Output)
	// Output: cat: no such file
}
