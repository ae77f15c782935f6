package handlers_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/handlers"
	"nodekit.dev/node/podactor"
)

// refusing is a container in which every command fails.
type refusing struct{}

func (refusing) ExecSync(context.Context, string, []string, time.Duration) (handlers.ExecResult, error) {
	return handlers.ExecResult{Stderr: []byte("disk full"), ExitCode: 28}, nil
}

func ExampleRunner_RunHandler() {
	runner, err := handlers.New(handlers.Default(), refusing{}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = runner.RunHandler(ctx, podactor.HandlerRequest{
		Pod:         &corev1.Pod{},
		Container:   "db",
		ContainerID: "c1",
		Handler:     &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"flush", "--all"}}},
	})
	fmt.Println(err)
	// Output: exec ["flush" "--all"]: exit code 28, output: "disk full"
}
