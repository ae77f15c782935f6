package nodefx_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx/fxevent"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

// config is a whole configuration with directories of its own; the endpoint
// leads nowhere.
func config(t testing.TB) wire.Config {
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "node-1", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir = t.TempDir(), t.TempDir()
	cfg.CRI.Endpoint = "unix:///nowhere/cri.sock"
	return cfg
}

// pods is a source of a fixed set.
type pods struct {
	name string
	set  []*corev1.Pod
}

func (p pods) Name() string { return p.name }

func (p pods) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	select {
	case updates <- node.SourceUpdate{Pods: p.set}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// worldExec runs the commands of handlers in a World.
type worldExec struct{ *runtimetest.World }

func (e worldExec) ExecSync(ctx context.Context, id string, cmd []string, _ time.Duration) (handlers.ExecResult, error) {
	res, err := e.Exec(ctx, id, cmd)
	return handlers.ExecResult{Stdout: []byte(res.Stdout), Stderr: []byte(res.Stderr), ExitCode: res.ExitCode}, err
}

// onWorld makes all that touches the machine parts in memory.
func onWorld(t testing.TB, b *actortest.Bench, more ...nodefx.Option) []nodefx.Option {
	return append([]nodefx.Option{
		nodefx.Config(config(t)),
		nodefx.Replace[node.Engine](func() *actortest.Bench { return b }),
		nodefx.Replace[node.Watcher](func() *actortest.Bench { return b }),
		nodefx.Replace[node.Puller](func() *actortest.Bench { return b }),
		nodefx.Replace[node.Mounter](func() *actortest.Mounts { return b.Mounts }),
		nodefx.Replace[node.Specs](func() actortest.Specs { return actortest.Specs{} }),
		nodefx.Replace[handlers.Execer](func() worldExec { return worldExec{b.World} }),
		nodefx.AddStatusSink(b),
		nodefx.AddEventSink(b),
	}, more...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newAgent(t testing.TB, opts ...nodefx.Option) *nodefx.Agent {
	t.Helper()
	a, err := nodefx.New(opts...)
	must(t, err)
	return a
}

// wantError wants New to fail and to say all of these.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one that says %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

// after lets that much of a bubble's time go by.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// built keeps the names of the constructors and decorators that fx ran.
type built struct {
	mu    sync.Mutex
	names []string
}

func (b *built) option() nodefx.Option {
	return nodefx.WithEventLogger(func(*slog.Logger) fxevent.Logger { return b })
}

func (b *built) LogEvent(e fxevent.Event) {
	if run, ok := e.(*fxevent.Run); ok {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.names = append(b.names, strings.TrimSuffix(run.Name, "()"))
	}
}

func (b *built) has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.names, name)
}

// lines is a log handler's sink that keeps all lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
