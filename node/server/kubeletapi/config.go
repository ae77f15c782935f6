package kubeletapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/nodelogs"
	"nodekit.dev/runtime"
)

// Config says which routes there are, in the words of KubeletConfiguration and
// of feature gates.
type Config struct {
	// PodLogsDir holds the logs of containers; none is read outside of it.
	PodLogsDir string
	// CheckpointDir is where archives of containers go; it is made when it is
	// needed. Stock: "checkpoints" in the root directory.
	CheckpointDir string
	// NodeLogDir holds the logs of the machine.
	NodeLogDir string

	// Debugging is enableDebuggingHandlers: without it there is only what the
	// read-only port has as well.
	Debugging bool
	// SystemLogHandler serves /logs/, SystemLogQuery answers log queries there.
	SystemLogHandler, SystemLogQuery bool
	// Profiling serves /debug/pprof/, DebugFlags /debug/flags/v.
	Profiling, DebugFlags bool

	// StreamIdleTimeout is streamingConnectionIdleTimeout; 0: none.
	StreamIdleTimeout time.Duration
	// TranslateWebSockets is the gate ExtendWebSocketsToKubelet.
	TranslateWebSockets bool
	// Checkpoints is the gate ContainerCheckpoint.
	Checkpoints bool
	// SplitLogStreams is the gate PodLogsQuerySplitStreams.
	SplitLogStreams bool
	// AllocatedPods is the gate KubeletAllocatedPodsEndpoint.
	AllocatedPods bool
}

// Default is the stock kubelet's of v1.37.
func Default() Config {
	return Config{
		PodLogsDir: "/var/log/pods", CheckpointDir: "/var/lib/kubelet/checkpoints", NodeLogDir: "/var/log",
		Debugging: true, SystemLogHandler: true, Profiling: true, DebugFlags: true,
		StreamIdleTimeout: 4 * time.Hour, TranslateWebSockets: true, Checkpoints: true,
	}
}

func (c Config) validate() error {
	for _, dir := range []struct{ field, path string }{
		{"PodLogsDir", c.PodLogsDir}, {"CheckpointDir", c.CheckpointDir}, {"NodeLogDir", c.NodeLogDir},
	} {
		if !filepath.IsAbs(dir.path) {
			return fmt.Errorf("kubeletapi: %s %q: must be an absolute path", dir.field, dir.path)
		}
	}
	if c.StreamIdleTimeout < 0 {
		return fmt.Errorf("kubeletapi: StreamIdleTimeout %v: must not be negative", c.StreamIdleTimeout)
	}
	return nil
}

// Pods are the pods that the node has. *node.Node is one.
type Pods interface {
	// Pods is quick and may be called concurrently.
	Pods() []node.PodView
}

// Runtime is what the routes ask of the container runtime. *cri.Client is one.
// All methods may block until ctx ends, and are called concurrently.
type Runtime interface {
	LookPod(ctx context.Context, uid string) (runtime.Pod, error)
	ListPods(ctx context.Context) ([]runtime.Pod, error)
	// Exec, Attach and PortForward give an address that works once.
	Exec(ctx context.Context, req runtime.ExecRequest) (*url.URL, error)
	Attach(ctx context.Context, req runtime.ExecRequest) (*url.URL, error)
	PortForward(ctx context.Context, req runtime.PortForwardRequest) (*url.URL, error)
}

// Commander runs one command in a container and waits for it.
type Commander interface {
	// RunCommand returns what the command said. It may block until ctx ends,
	// and is called concurrently.
	RunCommand(ctx context.Context, containerID string, cmd []string) (CommandResult, error)
}

// CommandResult is how a command ended.
type CommandResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Checkpointer writes archives of containers. *cri.Client is one.
type Checkpointer interface {
	// CheckpointContainer may block until ctx ends, and is called concurrently.
	CheckpointContainer(ctx context.Context, req runtime.CheckpointRequest) error
}

// Logs reads the logs of containers.
type Logs interface {
	// CopyLog writes the lines that are asked for. It blocks until they are
	// written, or ctx ends; it is called concurrently.
	CopyLog(ctx context.Context, req LogRequest) error
}

// LogRequest asks for lines of one log.
type LogRequest struct {
	Path string
	// Within is a directory that the path must not leave, by symlinks neither.
	Within     string
	Since      time.Time // zero: from the beginning
	Tail       *int64    // the last lines; nil: all
	LimitBytes *int64    // nil: no limit
	Timestamps bool
	// Follow waits for more until Ended is closed.
	Follow bool
	Ended  <-chan struct{}
	Stream string // "stdout" or "stderr"; empty: both
	Out    io.Writer
	// Opened is called before the first line, once it is known that there is a log.
	Opened func()
}

// Parts is what the routes are made of.
type Parts struct {
	Pods    Pods    // required
	Runtime Runtime // required
	Logs    Logs
	// Ends tells when containers end; nil: followed logs end with the client.
	Ends         *Ends
	Commands     Commander
	Checkpointer Checkpointer
	// HostCommands runs journalctl; nil: [nodelogs.Commands].
	HostCommands nodelogs.Runner
	// Allocated are the pods as they were admitted; nil: as the node has them.
	Allocated func() []*corev1.Pod

	// Checks add up to /healthz. The stock ones are there by themselves, unless
	// one has their name: "ping"; "syncloop", which asks for the pods; and "log",
	// which calls FlushLogs.
	Checks []node.Ordered[server.Check]
	// FlushLogs writes what was logged so far; it hangs where nobody takes it.
	// Nil: a line is logged for who debugs.
	FlushLogs func()
	// Configz is what /configz shows, Flags what /flagz does, without secrets.
	Configz func() any
	Flags   func() map[string]string
	// Status is what /statusz tells; its Paths are filled in. Component empty:
	// not served.
	Status server.Status
	// Profiler serves /debug/pprof/ (net/http/pprof is for programs alone).
	Profiler http.Handler
	// SetVerbosity changes what is logged, for /debug/flags/v, and says so.
	SetVerbosity func(level string) (string, error)

	// WebSocket is told about each WebSocket stream that is translated: "exec",
	// "attach" or "portforward"; nil: nobody is.
	WebSocket func(subresource string)
	Log       *slog.Logger // nil: nothing is logged
}

func (p Parts) validate() error {
	if p.Pods == nil || p.Runtime == nil {
		return errors.New("kubeletapi: Pods and Runtime must be set")
	}
	return nil
}
