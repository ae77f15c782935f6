// Package cri is the client of a container runtime that speaks the CRI: v1,
// or v1alpha2 where the runtime knows no v1. Its methods take and give the
// types of package runtime, and nothing of the CRI's own messages.
//
//	c, err := cri.New(cri.Config{Endpoint: "unix:///run/containerd/containerd.sock"})
//	if err != nil { ... }
//	defer c.Close()
//	if err := c.Probe(ctx); err != nil { ... } // optional: fail early
//	id, err := c.RunSandbox(ctx, runtime.SandboxConfig{...})
//
// # Rules
//
//   - New does no I/O. The first call connects; a runtime that went away is
//     reconnected to, and asked anew for its version. A call while it is away
//     fails at once with an error that IsUnavailable tells.
//   - Every call has a bound of its own (Config.RequestTimeout) besides its
//     context, but for pulls, execs without a timeout and Events.
//   - Calls that make something go away succeed where it is gone already.
//   - A request that asks for a field which the runtime's API version does not
//     have is refused before it is sent: never less than was asked for.
//   - Pods are told by the label io.kubernetes.pod.uid. What has none is not
//     ours and is not seen.
package cri
