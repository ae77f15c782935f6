// Package bench measures an agent that is a member of a cluster: pods through a
// real API server, against the bare CRI calls that they amount to, on one
// containerd, in one run. It is the second half of `make bench`.
//
//	report, err := bench.Run(ctx, integration.Options{Pods: 20, Burst: 50})
//	report.Print(os.Stdout)
//	if !report.OK() { ... }
//
// # What is measured
//
//   - Created to Ready is from before the POST of a pod that is bound to the node
//     already (no scheduler is in its way) until the watch of the bench brings the
//     pod with Ready=True.
//   - Deleted to gone is from before the DELETE, with the pod's own grace, until
//     that watch brings DELETED. The container ends at once on SIGTERM.
//   - The bare calls are RunPodSandbox, CreateContainer and StartContainer;
//     StopContainer, StopPodSandbox and RemovePodSandbox, with the requests that
//     the agent itself made for such a pod: a proxy recorded them.
//   - Five volumes are a configMap, a secret, a projected token, an emptyDir and a
//     downwardAPI; the pods without have none at all, and go in turns with them.
//   - API server, etcd, controllers and scheduler run on the same machine. What
//     they take for a pod is part of the agent's side, and of no bare one.
//
// The agent is the stripped cmd/kubelet in a process of its own. It would take the
// bare pods for pods that nobody wants, so it is stopped by a signal (SIGSTOP)
// while one of them is there, and not running at all during a bare burst.
// NODEKIT_AGENT names another agent's binary to measure, such as a vendor's.
package bench
