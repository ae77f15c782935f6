// Package handlers runs the postStart and preStop handlers of containers: a
// command in the container, an HTTP request to it, or a sleep. A [Runner] is a
// podactor.HookRunner.
//
//	runner, err := handlers.New(handlers.Default(), execer, log)
//	err = runner.RunHandler(ctx, podactor.HandlerRequest{Pod: pod, Container: "web", ContainerID: id, Handler: hook, PodIPs: ips})
//
// Rules for callers: the context is the only bound on a handler's time, so give
// it a deadline (what is left of the grace period). A handler may run more than
// once for one container: after a restart of the agent it is run again.
//
// An error says which handler failed and how: the command with its exit code
// and the end of its output, or the URL. As with the stock kubelet an HTTP
// answer of any status is a success; only a missing answer is a failure.
package handlers
