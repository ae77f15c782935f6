package runtimes

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime/cri"
	"nodekit.dev/runtime/observe"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/test/integration/testbed"
)

func TestSuite(t *testing.T) {
	testbed.Require(t)
	for _, version := range []string{testbed.V2, testbed.V16} {
		t.Run("containerd "+version, func(t *testing.T) {
			t.Parallel()
			bed := startBed(t, version)
			runtimetest.Suite(t, func(t *testing.T) runtimetest.Subject { return subject(t, bed, cri.Config{}) })
		})
	}
	t.Run("lists as streams", func(t *testing.T) {
		t.Parallel()
		bed := startBed(t, testbed.V2)
		requireStreams(t, bed)
		runtimetest.Suite(t, func(t *testing.T) runtimetest.Subject { return subject(t, bed, cri.Config{StreamLists: true}) })
	})
}

// requireStreams fails where the runtime has no lists as streams: the client
// would ask in the usual way, and the suite would show nothing.
func requireStreams(t *testing.T, bed *testbed.Bed) {
	t.Helper()
	conn, err := grpc.NewClient(bed.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	runtimes, images := runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)
	serves(t, func() (grpc.ServerStreamingClient[runtimeapi.StreamPodSandboxesResponse], error) {
		return runtimes.StreamPodSandboxes(t.Context(), &runtimeapi.StreamPodSandboxesRequest{})
	})
	serves(t, func() (grpc.ServerStreamingClient[runtimeapi.StreamContainersResponse], error) {
		return runtimes.StreamContainers(t.Context(), &runtimeapi.StreamContainersRequest{})
	})
	serves(t, func() (grpc.ServerStreamingClient[runtimeapi.StreamImagesResponse], error) {
		return images.StreamImages(t.Context(), &runtimeapi.StreamImagesRequest{})
	})
}

func serves[R any](t *testing.T, open func() (grpc.ServerStreamingClient[R], error)) {
	t.Helper()
	stream, err := open()
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func startBed(t *testing.T, version string) *testbed.Bed {
	t.Helper()
	bed, err := testbed.Start(t.Context(), testbed.Options{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := bed.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return bed
}

// subject is a containerd seen through runtime/cri and runtime/observe.
func subject(t *testing.T, bed *testbed.Bed, cfg cri.Config) runtimetest.Subject {
	t.Helper()
	cfg.Endpoint = bed.Endpoint()
	client, err := cri.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	observer, err := observe.New(observe.DefaultConfig(), client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- observer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the observer ended with %v", err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return runtimetest.Subject{
		Sandboxes: client, Containers: client, Pods: client, Images: client,
		Image:        testbed.BusyboxImage,
		MissingImage: testbed.RegistryHost + "/missing:1",
		CgroupParent: bed.CgroupRoot + "/suite",
		LogDirectory: bed.PodLogs,
		Hints:        observer.Hints(),
		ReopenLog:    client.ReopenContainerLog,
		KillSandbox: func(t *testing.T, _, sandboxID string) {
			if err := bed.CrashSandbox(t.Context(), sandboxID); err != nil {
				t.Fatal(err)
			}
		},
	}
}
