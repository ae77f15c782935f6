package probe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Type says what a probe decides.
type Type string

// The types of probes, as the stock kubelet writes them in events and series.
const (
	Liveness  Type = "Liveness"
	Readiness Type = "Readiness"
	Startup   Type = "Startup"
)

// Kind names a way to check. It is the field of core/v1 ProbeHandler that is
// set, or a vendor's own word for a [Check] that only the Go API asks for.
type Kind string

// The kinds that pods can name.
const (
	HTTPGet   Kind = "httpGet"
	TCPSocket Kind = "tcpSocket"
	GRPC      Kind = "grpc"
	Exec      Kind = "exec"
)

// KindOf is the kind of a pod's handler, empty for a handler that sets nothing.
func KindOf(h corev1.ProbeHandler) Kind {
	switch {
	case h.HTTPGet != nil:
		return HTTPGet
	case h.TCPSocket != nil:
		return TCPSocket
	case h.GRPC != nil:
		return GRPC
	case h.Exec != nil:
		return Exec
	}
	return ""
}

// Result is how one check ended.
type Result int8

// The results. Warning counts as a success that users are told about (an HTTP
// redirect to another host). Unknown says that the check could not be made; it
// counts neither as success nor as failure.
const (
	Unknown Result = iota
	Success
	Warning
	Failure
)

// Check makes one check. It ends when its context does, at the latest: the
// context carries the probe's timeout. It is called concurrently.
type Check func(ctx context.Context, t Target) Outcome

// Checker makes checks of one kind. A [Check] is one by itself.
type Checker interface {
	// Check is as [Check] says.
	Check(ctx context.Context, t Target) Outcome
}

// Check calls c.
func (c Check) Check(ctx context.Context, t Target) Outcome { return c(ctx, t) }

// Outcome is what one check found.
type Outcome struct {
	Result Result
	// Output is what users are told, in the stock kubelet's words, such as
	// "HTTP probe failed with statuscode: 503".
	Output string
	// Err is why the check could not be made at all; its Result is Unknown.
	Err error
}

// Target is what one check looks at.
type Target struct {
	// Namespace, Pod and UID name the pod, Container and ContainerID one run of
	// a container in it. Only exec checks need the last.
	Namespace, Pod, UID    string
	Container, ContainerID string
	// Workload is the name that the pod shares with others of its controller, for
	// metrics; empty: its own.
	Workload string
	// Host is the pod's first IP, or the node's of a host-network pod. A handler
	// that names a host of its own goes there.
	Host string
	// Ports are the container's, for handlers that name a port.
	Ports []corev1.ContainerPort
	// Type is what the check decides.
	Type Type
	// Handler is the pod's, for the kinds of the API. Not to be changed.
	Handler corev1.ProbeHandler
	// Timeout is what the check may take; its context ends then. It is here for
	// messages and for who must tell it to others (the runtime's ExecSync).
	Timeout time.Duration
}
