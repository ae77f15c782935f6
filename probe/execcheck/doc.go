// Package execcheck checks that a command in a container succeeds, as the exec
// handler of a pod's probe means it (core/v1 ExecAction).
//
//	outcome := execcheck.Check(ctx, execcheck.Target{ContainerID: id, Command: []string{"cat", "/ready"}, Timeout: time.Second}, runtime)
package execcheck
