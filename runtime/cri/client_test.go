package cri

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func TestEndpoints(t *testing.T) {
	for _, tt := range []struct{ endpoint, path, err string }{
		{"unix:///run/c.sock", "/run/c.sock", ""},
		{"/run/c.sock", "/run/c.sock", ""},
		{"tcp://127.0.0.1:1", "", "only support unix socket endpoint"},
		{"npipe:////./pipe/c", "", `protocol "npipe" not supported`},
		{"run/c.sock", "", "absolute path"},
		{"unix://run/c.sock", "", "absolute path"},
		{"unix://", "", "absolute path"},
	} {
		path, err := socketPath(tt.endpoint)
		if path != tt.path || (tt.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("socketPath(%q) = %q, %v; want %q, %q", tt.endpoint, path, err, tt.path, tt.err)
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	_, err := New(Config{ImageEndpoint: "tcp://x", RequestTimeout: -1, APIVersion: "v2"})
	for _, want := range []string{"Endpoint: must not be empty", "ImageEndpoint: endpoint \"tcp://x\": only support unix socket endpoint", "RequestTimeout: -1ns", `APIVersion: "v2"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v; want %q in it", err, want)
		}
	}
}

func TestNewDoesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	if _, err := New(Config{Endpoint: "unix:///nowhere"}); err != nil {
		t.Fatal(err)
	}
}

func TestProbeDecidesTheVersion(t *testing.T) {
	for _, tt := range []struct {
		serves []string
		want   string
	}{
		{[]string{apiV1}, apiV1},
		{[]string{apiV1alpha2, apiV1}, apiV1},
		{[]string{apiV1alpha2}, apiV1alpha2},
	} {
		f, socket := newFake(), socketIn(t)
		stop := serve(t, f, socket, tt.serves...)
		c := connect(t, socket)
		if err := c.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := c.Version(t.Context())
		if err != nil || v.APIVersion != tt.want || v.RuntimeName != "fake" || v.RuntimeVersion != "1.2.3" {
			t.Errorf("serving %v: Version = %+v, %v; want API %s", tt.serves, v, err, tt.want)
		}
		f.answer("StopContainer", &runtimeapi.StopContainerResponse{})
		if err := c.StopContainer(t.Context(), "x", 0); err != nil {
			t.Error(err)
		}
		if last := f.called(); last[len(last)-1] != tt.want+".RuntimeService/StopContainer" {
			t.Errorf("serving %v: called %v", tt.serves, last)
		}
		stop()
	}
}

func TestProbeFailures(t *testing.T) {
	unimplemented := status.Error(codes.Unimplemented, "unknown service runtime.v1.RuntimeService")
	for _, tt := range []struct {
		name   string
		answer any
		want   string
	}{
		{"neither version", unimplemented, "unknown service runtime.v1.RuntimeService"},
		{"other error", status.Error(codes.Internal, "broken"), "code = Internal desc = broken"},
		{"incomplete", &runtimeapi.VersionResponse{RuntimeName: "x", RuntimeApiVersion: "v1"},
			"not all fields are set in VersionResponse (missing Version, RuntimeVersion)"},
	} {
		f := newFake()
		f.answer("Version", tt.answer)
		c := start(t, f)
		err := c.Probe(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Probe = %v; want %q in it", tt.name, err, tt.want)
		}
	}
}

func TestProbeWithoutARuntime(t *testing.T) {
	c := connect(t, "unix:///nonexistent/c.sock")
	err := c.Probe(t.Context())
	const want = `validate service connection: validate CRI v1 runtime API for endpoint "unix:///nonexistent/c.sock": rpc error: code = Unavailable`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Probe = %v; want it to begin with %q", err, want)
	}
	if _, err := c.Status(t.Context()); !IsUnavailable(err) {
		t.Errorf("Status = %v; want an unavailable runtime", err)
	}
}

func TestSeparateImageEndpoint(t *testing.T) {
	pods, images, imageSocket := newFake(), newFake(), socketIn(t)
	images.answer("ImageFsInfo", &runtimeapi.ImageFsInfoResponse{})
	images.answer("ListImages", &runtimeapi.ListImagesResponse{Images: []*runtimeapi.Image{{Id: "i", Pinned: true}}})
	t.Cleanup(serve(t, images, imageSocket, apiV1alpha2))
	c := start(t, pods, func(cfg *Config) { cfg.ImageEndpoint = imageSocket })
	if err := c.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := c.ListImages(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "i" || !list[0].Pinned {
		t.Errorf("ListImages = %+v, %v", list, err)
	}
	if calls := images.called(); !slices.Contains(calls, "v1alpha2.ImageService/ListImages") {
		t.Errorf("the image service was called %v", calls)
	}
	for _, call := range pods.called() {
		if strings.Contains(call, "ImageService") {
			t.Errorf("the runtime service was called %s", call)
		}
	}
}

func TestRuntimeComesBackAsAnotherVersion(t *testing.T) {
	f, socket := newFake(), socketIn(t)
	stop := serve(t, f, socket, apiV1alpha2)
	c := connect(t, socket)
	if v, err := c.Version(t.Context()); err != nil || v.APIVersion != apiV1alpha2 {
		t.Fatalf("before the restart: %+v, %v", v, err)
	}
	stop()
	f.answer("Version", &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "2.0.0", RuntimeApiVersion: "v1"})
	f.answer("StopContainer", &runtimeapi.StopContainerResponse{})
	defer serve(t, f, socket, apiV1)()
	eventually(t, "a call succeeds after the restart", func() bool {
		return c.StopContainer(t.Context(), "x", 0) == nil
	})
	if v, err := c.Version(t.Context()); err != nil || v.APIVersion != apiV1 || v.RuntimeVersion != "2.0.0" {
		t.Errorf("after the restart: %+v, %v", v, err)
	}
}

func TestVersionIsAskedOncePerConnection(t *testing.T) {
	f := newFake()
	f.answer("StopContainer", &runtimeapi.StopContainerResponse{})
	c := start(t, f)
	for range 10 {
		if err := c.StopContainer(t.Context(), "x", 0); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	for _, call := range f.called() {
		if strings.HasSuffix(call, "/Version") {
			asked++
		}
	}
	if asked > 2 { // the first answer may be of the connection before
		t.Errorf("Version was called %d times in 10 calls", asked)
	}
}

func TestCloseEndsCallsAndLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	f, socket := newFake(), socketIn(t)
	entered := make(chan struct{})
	f.stream = func(s runtimeapi.RuntimeService_GetContainerEventsServer) error {
		close(entered)
		<-s.Context().Done()
		return s.Context().Err()
	}
	defer serve(t, f, socket, apiV1)()
	c, err := New(Config{Endpoint: socket})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- c.Events(context.WithoutCancel(t.Context()), func() {}, func(runtime.Hint) {}) }()
	<-entered
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("Events returned no error when the client was closed")
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := c.StartContainer(t.Context(), "x"); !errors.Is(err, errClosed) {
		t.Errorf("a call after Close: %v", err)
	}
}

func TestWaitingForTheVersionEndsWithTheContext(t *testing.T) {
	c := connect(t, "unix:///nonexistent/c.sock")
	c.conn.probing <- struct{}{} // somebody asks and gets no answer
	defer func() { <-c.conn.probing }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.StartContainer(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("StartContainer = %v; want it to be cancelled", err)
	}
}

func TestBoundsOfCalls(t *testing.T) {
	const bound = 100 * time.Second
	f := newFake()
	c := start(t, f, func(cfg *Config) { cfg.RequestTimeout = bound })
	ctx := t.Context()
	for _, tt := range []struct {
		method string
		call   func() error
		want   time.Duration
	}{
		{"RunPodSandbox", func() error { _, err := c.RunSandbox(ctx, plainSandbox()); return err }, 2 * bound},
		{"CreateContainer", func() error { _, err := c.CreateContainer(ctx, "s", plainContainer(), plainSandbox()); return err }, bound},
		{"StopContainer", func() error { return c.StopContainer(ctx, "c", 30*time.Second) }, bound + 30*time.Second},
		{"StartContainer", func() error { return c.StartContainer(ctx, "c") }, bound},
		{"ExecSync", func() error { _, err := c.ExecSync(ctx, "c", nil, 5*time.Second); return err }, bound + 5*time.Second},
		{"ListImages", func() error { _, err := c.ListImages(ctx); return err }, bound},
		{"Status", func() error { _, err := c.Status(ctx); return err }, bound},
	} {
		if err := tt.call(); !IsUnimplemented(err) {
			t.Errorf("%s: %v; the fake does not implement it", tt.method, err)
		}
		if got := f.deadlines[tt.method]; got > tt.want || got < tt.want-20*time.Second {
			t.Errorf("%s may take %v, want %v", tt.method, got, tt.want)
		}
	}
}

func TestObserverIsToldOfEachCall(t *testing.T) {
	f := newFake()
	var calls []Call
	c := start(t, f, func(cfg *Config) {
		cfg.Observer.Called = func(call Call) { calls = append(calls, call) }
	})
	f.answer("RemovePodSandbox", status.Error(codes.Internal, "busy"))
	if err := c.RemoveSandbox(t.Context(), "s1"); err == nil {
		t.Fatal("the runtime's error is lost")
	}
	last := calls[len(calls)-1]
	if last.Method != "RemovePodSandbox" || last.Err == nil || last.Took <= 0 {
		t.Errorf("told: %+v", last)
	}
}
