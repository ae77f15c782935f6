// Package runtime holds the types that the rest of nodekit uses to talk about
// a container runtime: what a sandbox and a container should be
// ([SandboxConfig], [ContainerConfig]), and what the runtime last said about
// one pod ([Pod], [Sandbox], [Container]).
//
// It is pure: no I/O, no gRPC, no cri-api. Its subpackages do the work:
//
//	runtime/cri          the CRI v1 client (and v1alpha2 by fall-back)
//	runtime/observe      container events, per-pod looks and the relist
//	runtime/images       pulls with caps, back-off and the stock reasons
//	runtime/logs         the CRI log format: read back, rotated
//	runtime/runtimetest  a strict in-memory runtime and the contract suite
//	runtime/runtimefx    the fx adapters of all of these
//
// Embedders who run pods with something that is not a CRI runtime build their
// own node.Engine from these types (examples/custom-engine).
package runtime
