// Package serving ties what package server needs of the runtime to it: the logs
// of containers, and commands in them. An agent that serves no API does not
// import it.
//
//	kubeletapi.Parts{Logs: serving.ContainerLogs(log), Commands: serving.Commander(client)}
//
// Both are safe for concurrent use and need no Run.
package serving

import (
	"context"
	"log/slog"

	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/logs"
)

// ContainerLogs reads the logs of containers for the kubelet's API.
func ContainerLogs(log *slog.Logger) kubeletapi.Logs { return containerLogs{log} }

type containerLogs struct{ log *slog.Logger }

func (c containerLogs) CopyLog(ctx context.Context, req kubeletapi.LogRequest) error {
	return logs.Copy(ctx, logs.Request{
		Path: req.Path, Within: req.Within, Stdout: req.Out, Stderr: req.Out, Ended: req.Ended, Opened: req.Opened, Log: c.log,
		Options: logs.Options{
			Since: req.Since, Tail: req.Tail, LimitBytes: req.LimitBytes,
			Timestamps: req.Timestamps, Follow: req.Follow, Stream: req.Stream,
		},
	})
}

// Commander runs commands in containers for the kubelet's API.
func Commander(client *cri.Client) kubeletapi.Commander { return commander{client} }

type commander struct{ cri *cri.Client }

func (c commander) RunCommand(ctx context.Context, containerID string, cmd []string) (kubeletapi.CommandResult, error) {
	got, err := c.cri.ExecSync(ctx, containerID, cmd, 0)
	return kubeletapi.CommandResult{Stdout: got.Stdout, Stderr: got.Stderr, ExitCode: got.ExitCode}, err
}
