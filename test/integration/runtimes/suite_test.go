package runtimes

import (
	"context"
	"errors"
	"testing"
	"time"

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
			runtimetest.Suite(t, func(t *testing.T) runtimetest.Subject { return subject(t, bed) })
		})
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
func subject(t *testing.T, bed *testbed.Bed) runtimetest.Subject {
	t.Helper()
	client, err := cri.New(cri.Config{Endpoint: bed.Endpoint()})
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
