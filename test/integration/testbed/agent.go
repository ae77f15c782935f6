package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"nodekit.dev/test/integration/daemon"
)

// AgentOptions says what agent to start on a bed.
type AgentOptions struct {
	// Manifests is the folder of static pods; empty: none.
	Manifests string
	// NodeName is what the agent calls its node; default: the constant NodeName.
	NodeName string
	// Program is the agent's binary; default: cmd/kubelet, built by BuildAgent.
	Program string
	// Root is the agent's root directory; default: agent, in the bed's folder.
	Root string
	// Config holds fields of KubeletConfiguration over those that the bed sets.
	Config map[string]any
	// Flags are added to those that the bed sets.
	Flags []string
}

// NodeName is what agents call their node by default, and so the end of static
// pods' names.
const NodeName = "bed"

// Agent is a cmd/kubelet that runs on a bed, in a process of its own.
type Agent struct {
	// Root is its root directory.
	Root string
	// LogFile is where it logs; later starts append.
	LogFile string

	config  daemon.Config
	healthz string // base URL
	api     *http.Client
	process *daemon.Daemon
}

// AgentEnv names another agent's binary to test instead of cmd/kubelet.
const AgentEnv = "NODEKIT_AGENT"

// BuildAgent builds cmd/kubelet of the main module (from go's cache, when
// nothing changed) and returns the path of the binary.
func BuildAgent(ctx context.Context) (string, error) {
	if program := os.Getenv(AgentEnv); program != "" {
		return program, nil
	}
	dir, err := command(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "nodekit.dev")
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(cache, "kubelet-under-test", "kubelet")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags=grpcnotrace", "-o", out, "./cmd/kubelet")
	cmd.Dir = strings.TrimSpace(dir)
	cmd.Env = append(withoutGoFlags(os.Environ()), "CGO_ENABLED=0")
	if _, err := run(cmd); err != nil {
		return "", fmt.Errorf("build the agent: %w", err)
	}
	return out, nil
}

// StartAgent starts an agent on the bed and returns when it is healthy.
func StartAgent(ctx context.Context, b *Bed, o AgentOptions) (*Agent, error) {
	a, err := newAgent(ctx, b, o)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return a, a.Start(ctx)
}

func newAgent(ctx context.Context, b *Bed, o AgentOptions) (*Agent, error) {
	if o.Root == "" {
		o.Root = b.slot.path("agent")
	}
	if err := os.MkdirAll(o.Root, 0o750); err != nil {
		return nil, err
	}
	if o.NodeName == "" {
		o.NodeName = NodeName
	}
	if o.Program == "" {
		program, err := BuildAgent(ctx)
		if err != nil {
			return nil, err
		}
		o.Program = program
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	configFile := o.Root + ".yaml"
	if err := b.writeAgentConfig(configFile, port, o.Config); err != nil {
		return nil, err
	}
	a := &Agent{
		Root:    o.Root,
		LogFile: o.Root + ".log",
		healthz: fmt.Sprintf("http://%s:%d", b.healthzIP(), port),
		api:     clientOf(filepath.Join(o.Root, apiSocket)),
	}
	a.config = daemon.Config{
		Program: o.Program,
		Args: append([]string{
			"--config=" + configFile,
			"--root-dir=" + o.Root,
			"--cert-dir=" + filepath.Join(o.Root, "pki"), // by default one place for all agents
			"--container-runtime-endpoint=" + b.Endpoint(),
			"--pod-manifest-path=" + o.Manifests,
			"--node-ip=" + b.NodeIP.String(),
			"--hostname-override=" + o.NodeName,
			"--v=4",
		}, o.Flags...),
		Env:       os.Environ(),
		Log:       a.LogFile,
		Namespace: b.Namespace,
	}
	return a, nil
}

// healthzIP is where agents serve their health: loopback, unless that of the
// bed is not this machine's.
func (b *Bed) healthzIP() string {
	if b.Namespace != "" {
		return b.NodeIP.String()
	}
	return "127.0.0.1"
}

// writeAgentConfig writes the KubeletConfiguration of an agent on this bed.
func (b *Bed) writeAgentConfig(path string, healthzPort int, more map[string]any) error {
	config := map[string]any{
		"apiVersion":   "kubelet.config.k8s.io/v1beta1",
		"kind":         "KubeletConfiguration",
		"cgroupDriver": "cgroupfs",
		"cgroupRoot":   b.CgroupRoot,
		"failCgroupV1": false,
		"podLogsDir":   b.PodLogs,

		"healthzBindAddress": b.healthzIP(),
		"healthzPort":        healthzPort,
		// A killed agent loses what it has not flushed.
		"logging": map[string]any{"flushFrequency": "50ms"},
	}
	for field, value := range more {
		config[field] = value
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// freePort finds a port that nobody listens on right now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Start starts the agent (again, with the same arguments) and returns when it
// is healthy.
func (a *Agent) Start(ctx context.Context) (err error) {
	if a.process.Alive() {
		return nil
	}
	if a.process, err = daemon.Start(a.config); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = Eventually(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		if !a.process.Alive() {
			cancel()
			return fmt.Errorf("it ended by itself: %s", a.process.State())
		}
		_, err := get(ctx, http.DefaultClient, a.healthz+"/healthz")
		return err
	})
	if err != nil {
		return fmt.Errorf("agent: %w\n%s", err, a.Log(30))
	}
	return nil
}

// Kill ends the agent with SIGKILL.
func (a *Agent) Kill(ctx context.Context) error { return a.process.Kill(ctx) }

// Stop ends the agent with SIGTERM; its pods run on. An exit code other than 0
// is an error.
func (a *Agent) Stop(ctx context.Context) error {
	if !a.process.Alive() {
		return nil
	}
	if err := a.process.End(ctx, syscall.SIGTERM); err != nil {
		return errors.Join(err, a.process.Kill(context.WithoutCancel(ctx)))
	}
	if code := a.process.ExitCode(); code != 0 {
		return fmt.Errorf("agent: ended with %s on SIGTERM\n%s", a.process.State(), a.Log(30))
	}
	return nil
}

// Alive says that the agent's process runs.
func (a *Agent) Alive() bool { return a.process.Alive() }

// PID is the agent's process ID while it runs.
func (a *Agent) PID() int { return a.process.PID() }

// Log returns the last lines of the agent's log.
func (a *Agent) Log(lines int) string { return daemon.Tail(a.LogFile, lines) }

// Get asks the agent over its socket, such as for "/metrics/probes".
func (a *Agent) Get(ctx context.Context, path string) (string, error) {
	return get(ctx, a.api, "http://agent"+path)
}

// Pods asks the agent for all its pods with their status.
func (a *Agent) Pods(ctx context.Context) ([]corev1.Pod, error) {
	text, err := a.Get(ctx, "/pods")
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("agent: /pods: %w", err)
	}
	return list.Items, nil
}

// apiSocket is where the agent serves /pods and /debug, below its root directory.
const apiSocket = "nodekit.sock"

func clientOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}
