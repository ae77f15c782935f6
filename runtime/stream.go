package runtime

import "time"

// ExecRequest names a command to run in a container, and the streams that the
// client wants. Attach has no command.
type ExecRequest struct {
	ContainerID string
	Command     []string
	// At least one of these is true; a TTY has no Stderr of its own.
	Stdin, Stdout, Stderr bool
	TTY                   bool
}

// PortForwardRequest names a sandbox whose ports a client wants to reach.
type PortForwardRequest struct {
	SandboxID string
	// Ports are only told where the client's protocol can not (WebSocket).
	Ports []int32
}

// CheckpointRequest asks for an archive of a container that runs.
type CheckpointRequest struct {
	ContainerID string
	// Location is the path of the archive on the host, absolute.
	Location string
	// Timeout in whole seconds; 0: the runtime's own.
	Timeout time.Duration
}
