package pluginwatch_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/pluginwatch"
)

// plugin is one that registers, over real gRPC.
type plugin struct {
	registerapi.UnimplementedRegistrationServer
	info   *registerapi.PluginInfo
	told   chan *registerapi.RegistrationStatus
	failed int // calls of GetInfo that fail first

	mu    sync.Mutex
	asked int
}

func (p *plugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked++; p.asked <= p.failed {
		return nil, errors.New("not yet")
	}
	return p.info, nil
}

func (p *plugin) NotifyRegistrationStatus(ctx context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	select {
	case p.told <- s:
	case <-ctx.Done():
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// serve makes the socket; the result takes it away.
func serve(t *testing.T, path string, p *plugin) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, p)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	stop = sync.OnceFunc(func() {
		server.Stop()
		served.Wait()
	})
	t.Cleanup(stop)
	return stop
}

func csi(name string) *plugin {
	return &plugin{
		info: &registerapi.PluginInfo{Type: pluginwatch.CSI, Name: name, Endpoint: "/csi/" + name, SupportedVersions: []string{"1.0.0", "0.3.0"}},
		told: make(chan *registerapi.RegistrationStatus, 10),
	}
}

// handler tells what it was told, and fails as it is told to.
type handler struct {
	events chan string
	refuse chan error
}

func newHandler() *handler {
	return &handler{events: make(chan string, 10), refuse: make(chan error, 10)}
}

func (h *handler) Register(_ context.Context, r pluginwatch.Registration) error {
	h.events <- "+" + r.Name + " " + r.Endpoint + " " + strings.Join(r.Versions, ",") + " " + filepath.Base(r.Socket)
	select {
	case err := <-h.refuse:
		return err
	default:
		return nil
	}
}

func (h *handler) Unregister(r pluginwatch.Registration) {
	h.events <- "-" + r.Name + " " + filepath.Base(r.Socket)
}

func start(t *testing.T, dir string, h pluginwatch.Handler) (stop func() error) {
	t.Helper()
	w, err := pluginwatch.New(pluginwatch.Config{Dir: dir, Retry: backoff.Policy{Base: time.Millisecond, Max: 5 * time.Millisecond}},
		map[string]pluginwatch.Handler{pluginwatch.CSI: h}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func want[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came within 20 s")
	}
	return v
}

func wantEvent(t *testing.T, h *handler, text string) {
	t.Helper()
	if got := want(t, h.events); got != text {
		t.Fatalf("got %q, want %q", got, text)
	}
}

func wantTold(t *testing.T, p *plugin, registered bool, text string) {
	t.Helper()
	if got := want(t, p.told); got.GetPluginRegistered() != registered || !strings.Contains(got.GetError(), text) {
		t.Fatalf("told %v", got)
	}
}

// shortDir is a folder whose sockets have names that are short enough.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "plugins") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A plugin is found whether it was there before or comes later, in a folder of
// its own or not; it goes with its socket, and comes again with the next.
func TestPluginsComeAndGo(t *testing.T) {
	dir := filepath.Join(shortDir(t), "registry")
	h := newHandler()
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	early := csi("early")
	stopEarly := serve(t, filepath.Join(dir, "early.sock"), early)
	stop := start(t, dir, h)
	wantEvent(t, h, "+early /csi/early 1.0.0,0.3.0 early.sock")
	wantTold(t, early, true, "")

	if err := os.MkdirAll(filepath.Join(dir, "late"), 0o750); err != nil {
		t.Fatal(err)
	}
	late := csi("late")
	late.info.Endpoint = ""
	path := filepath.Join(dir, "late", "reg.sock")
	stopLate := serve(t, path, late)
	wantEvent(t, h, "+late "+path+" 1.0.0,0.3.0 reg.sock")
	wantTold(t, late, true, "")
	if err := os.Chmod(path, 0o600); err != nil { // an event that means nothing
		t.Fatal(err)
	}

	stopEarly() // takes the socket with it
	wantEvent(t, h, "-early early.sock")
	again := csi("early")
	serve(t, filepath.Join(dir, "early.sock"), again)
	wantEvent(t, h, "+early /csi/early 1.0.0,0.3.0 early.sock")
	wantTold(t, again, true, "")

	stopLate()
	wantEvent(t, h, "-late reg.sock")
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended with %v", err)
	}
	if left := len(h.events); left != 0 {
		t.Fatalf("%d more events: the agent's end is not the plugins'", left)
	}
}

// A socket made anew over another one, without a pause, is a new plugin.
func TestSocketReplaced(t *testing.T) {
	dir := shortDir(t)
	h := newHandler()
	start(t, dir, h)
	path := filepath.Join(dir, "a.sock")
	serve(t, path, csi("one"))
	wantEvent(t, h, "+one /csi/one 1.0.0,0.3.0 a.sock")
	for range 20 {
		if err := os.Rename(path, filepath.Join(dir, ".old")); err != nil {
			t.Fatal(err)
		}
		serve(t, path, csi("one"))
		wantEvent(t, h, "-one a.sock")
		wantEvent(t, h, "+one /csi/one 1.0.0,0.3.0 a.sock")
	}
}

// What fails is told and tried again as long as the socket is there.
func TestFailuresAreTriedAgain(t *testing.T) {
	dir := shortDir(t)
	h := newHandler()
	h.refuse <- errors.New("no version fits")
	start(t, dir, h)
	p := csi("p")
	p.failed = 3
	serve(t, filepath.Join(dir, "p.sock"), p)
	wantEvent(t, h, "+p /csi/p 1.0.0,0.3.0 p.sock")
	wantTold(t, p, false, "no version fits")
	wantEvent(t, h, "+p /csi/p 1.0.0,0.3.0 p.sock")
	wantTold(t, p, true, "")

	other := csi("other")
	other.info.Type = "TapeRobot"
	stop := serve(t, filepath.Join(dir, "other.sock"), other)
	for range 2 {
		wantTold(t, other, false, "no handler registered for plugin type: TapeRobot")
	}
	stop()
}

// What is no socket, or hidden, is left alone; a folder that is removed and made
// again is looked into.
func TestWhatIsNoPlugin(t *testing.T) {
	dir := filepath.Join(shortDir(t), "r")
	h := newHandler()
	start(t, dir, h)
	first := csi("first")
	for !slices.ContainsFunc([]string{dir}, exists) {
		<-time.After(time.Millisecond)
	}
	serve(t, filepath.Join(dir, "first.sock"), first)
	wantEvent(t, h, "+first /csi/first 1.0.0,0.3.0 first.sock")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, filepath.Join(dir, ".hidden.sock"), csi("hidden"))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, h, "-first first.sock")
	for !exists(dir) {
		<-time.After(time.Millisecond)
	}
	serve(t, filepath.Join(dir, "second.sock"), csi("second"))
	wantEvent(t, h, "+second /csi/second 1.0.0,0.3.0 second.sock")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
