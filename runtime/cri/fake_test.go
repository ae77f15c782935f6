package cri

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fake is a CRI server that answers from what a test put into it, and keeps
// the requests. What has no answer is Unimplemented, as in a real runtime.
type fake struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	// answers are by method name: a reply or an error.
	answers map[string]any
	// stream serves GetContainerEvents; nil: Unimplemented.
	stream func(runtimeapi.RuntimeService_GetContainerEventsServer) error
	// parts are what a list that is a stream sends, by method name: messages, or
	// an error to end with. None: Unimplemented.
	parts map[string][]any

	mu        sync.Mutex
	calls     []string // method names with their service, in order
	requests  map[string]proto.Message
	deadlines map[string]time.Duration
}

func newFake() *fake {
	return &fake{
		requests:  map[string]proto.Message{},
		deadlines: map[string]time.Duration{},
		answers: map[string]any{
			"Version": &runtimeapi.VersionResponse{
				Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1.2.3", RuntimeApiVersion: "v1",
			},
		},
	}
}

// intercept answers every unary call.
func (f *fake) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	name := filepath.Base(info.FullMethod)
	asked, _ := grpc.Method(ctx) // info has the name under v1, whatever was asked
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, strings.TrimPrefix(asked, "/runtime."))
	f.requests[name] = req.(proto.Message)
	if deadline, ok := ctx.Deadline(); ok {
		f.deadlines[name] = time.Until(deadline)
	}
	switch answer := f.answers[name].(type) {
	case error:
		return nil, answer
	case nil:
		return nil, status.Errorf(codes.Unimplemented, "unknown method %s", name)
	default:
		return answer, nil
	}
}

func (f *fake) GetContainerEvents(_ *runtimeapi.GetEventsRequest, s runtimeapi.RuntimeService_GetContainerEventsServer) error {
	if f.stream == nil {
		return status.Error(codes.Unimplemented, "method GetContainerEvents not implemented")
	}
	return f.stream(s)
}

func (f *fake) StreamContainers(_ *runtimeapi.StreamContainersRequest, s grpc.ServerStreamingServer[runtimeapi.StreamContainersResponse]) error {
	return sendParts(f, "StreamContainers", s.Send)
}

func (f *fake) StreamPodSandboxes(_ *runtimeapi.StreamPodSandboxesRequest, s grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxesResponse]) error {
	return sendParts(f, "StreamPodSandboxes", s.Send)
}

func (f *fake) StreamImages(_ *runtimeapi.StreamImagesRequest, s grpc.ServerStreamingServer[runtimeapi.StreamImagesResponse]) error {
	return sendParts(f, "StreamImages", s.Send)
}

func sendParts[R any](f *fake, name string, send func(*R) error) error {
	f.mu.Lock()
	f.calls = append(f.calls, name)
	parts := f.parts[name]
	f.mu.Unlock()
	if parts == nil {
		return status.Errorf(codes.Unimplemented, "method %s not implemented", name)
	}
	for _, part := range parts {
		if err, broken := part.(error); broken {
			return err
		}
		if err := send(part.(*R)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) answer(method string, with any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[method] = with
}

// called gives the calls since the last time, by method name.
func (f *fake) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func (f *fake) request(method string) proto.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[method]
}

// serve starts the fake on a socket, under the given API versions.
func serve(t testing.TB, f *fake, socket string, versions ...string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(f.intercept))
	for _, version := range versions {
		server.RegisterService(underVersion(runtimeapi.RuntimeService_ServiceDesc, version), f)
		server.RegisterService(underVersion(runtimeapi.ImageService_ServiceDesc, version), f)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	return func() { server.Stop(); <-done }
}

func underVersion(desc grpc.ServiceDesc, version string) *grpc.ServiceDesc {
	desc.ServiceName = strings.Replace(desc.ServiceName, "runtime.v1.", "runtime."+version+".", 1)
	return &desc
}

// socketIn makes a path that is short enough for a socket.
func socketIn(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") //nolint:usetesting // t.TempDir is longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// TestMain fails the package when any test left something running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves the fake and gives a client for it.
func start(t *testing.T, f *fake, change ...func(*Config)) *Client {
	t.Helper()
	socket := socketIn(t)
	t.Cleanup(serve(t, f, socket, apiV1))
	return connect(t, socket, change...)
}

// connect gives a client that is closed at the end of the test.
func connect(t *testing.T, endpoint string, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{Endpoint: endpoint}
	for _, c := range change {
		c(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// eventually waits until cond holds; the deadline only ends a test that failed.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("did not happen: %s", what)
		}
	}
}
