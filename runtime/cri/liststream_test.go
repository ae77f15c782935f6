package cri

import (
	"context"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func streaming(c *Config) { c.StreamLists = true }

func sandboxOf(uid string) *runtimeapi.PodSandbox {
	return &runtimeapi.PodSandbox{Id: "s-" + uid, Labels: map[string]string{runtime.LabelPodUID: uid}}
}

// withStreams has two of everything, one in each part.
func withStreams() *fake {
	f := newFake()
	f.parts = map[string][]any{
		"StreamContainers": {
			&runtimeapi.StreamContainersResponse{Containers: []*runtimeapi.Container{{Id: "c1", PodSandboxId: "s-u1"}}},
			&runtimeapi.StreamContainersResponse{Containers: []*runtimeapi.Container{{Id: "c2", PodSandboxId: "s-u2"}}},
		},
		"StreamPodSandboxes": {
			&runtimeapi.StreamPodSandboxesResponse{PodSandboxes: []*runtimeapi.PodSandbox{sandboxOf("u1")}},
			&runtimeapi.StreamPodSandboxesResponse{PodSandboxes: []*runtimeapi.PodSandbox{sandboxOf("u2")}},
		},
		"StreamImages": {
			&runtimeapi.StreamImagesResponse{Images: []*runtimeapi.Image{{Id: "i1"}}},
			&runtimeapi.StreamImagesResponse{Images: []*runtimeapi.Image{{Id: "i2"}}},
		},
	}
	return f
}

// withLists answers the usual calls.
func withLists() *fake {
	f := newFake()
	f.answers["ListContainers"] = &runtimeapi.ListContainersResponse{}
	f.answers["ListPodSandbox"] = &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{sandboxOf("u")}}
	f.answers["ListImages"] = &runtimeapi.ListImagesResponse{Images: []*runtimeapi.Image{{Id: "i"}}}
	return f
}

// Lists that are streams are put together, and told of under the usual names.
func TestListsAsStreams(t *testing.T) {
	f := withStreams()
	var mu sync.Mutex
	var told []string
	c := start(t, f, streaming, func(c *Config) {
		c.Observer.Called = func(call Call) {
			mu.Lock()
			defer mu.Unlock()
			if call.Err != nil {
				t.Errorf("told of %+v", call)
			}
			told = append(told, call.Method)
		}
	})
	pods, err := c.ListPods(t.Context())
	if err != nil || len(pods) != 2 || len(pods[0].Containers) != 1 || len(pods[1].Containers) != 1 {
		t.Fatalf("%+v, %v", pods, err)
	}
	if images, err := c.ListImages(t.Context()); err != nil || len(images) != 2 {
		t.Errorf("%+v, %v", images, err)
	}
	if want := []string{"ListContainers", "ListPodSandbox", "ListImages"}; !slices.Equal(told, want) {
		t.Errorf("told of %q", told)
	}
	for _, call := range f.called() {
		if slices.Contains([]string{"v1.RuntimeService/ListContainers", "v1.RuntimeService/ListPodSandbox", "v1.ImageService/ListImages"}, call) {
			t.Errorf("called %s as well", call)
		}
	}
}

// A stream that breaks gives nothing, rather than a part of the pods, and is no
// reason to ask in the usual way.
func TestListStreamBreaks(t *testing.T) {
	f := withStreams()
	f.answers = withLists().answers
	f.parts["StreamContainers"] = append(f.parts["StreamContainers"][:1:1], status.Error(codes.Internal, "no more"))
	c := start(t, f, streaming)
	if pods, err := c.ListPods(t.Context()); err == nil || pods != nil {
		t.Errorf("%+v, %v", pods, err)
	}
	if slices.Contains(f.called(), "v1.RuntimeService/ListContainers") {
		t.Error("asked in the usual way")
	}
}

// A runtime without such streams is asked for them once for each connection,
// one that was not to be asked never.
func TestListsWithoutStreams(t *testing.T) {
	for name, tc := range map[string]struct {
		change []func(*Config)
		asked  int
	}{"asked": {[]func(*Config){streaming}, 1}, "not asked": {nil, 0}} {
		t.Run(name, func(t *testing.T) {
			f := withLists()
			c := start(t, f, tc.change...)
			for range 3 {
				pods, err := c.ListPods(t.Context())
				if err != nil || len(pods) != 1 {
					t.Fatalf("%+v, %v", pods, err)
				}
			}
			if images, err := c.ListImages(t.Context()); err != nil || len(images) != 1 {
				t.Errorf("%+v, %v", images, err)
			}
			asked := 0
			for _, call := range f.called() {
				if call == "StreamContainers" || call == "StreamPodSandboxes" || call == "StreamImages" {
					asked++
				}
			}
			if asked != tc.asked {
				t.Errorf("asked for a stream %d times, not %d", asked, tc.asked)
			}
		})
	}
}

// A runtime that comes back may have learned to stream.
func TestListStreamsAfterRestart(t *testing.T) {
	socket := socketIn(t)
	stop := serve(t, withLists(), socket, apiV1)
	c := connect(t, socket, streaming)
	if _, err := c.ListPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	both := withStreams()
	both.answers = withLists().answers
	t.Cleanup(serve(t, both, socket, apiV1))
	for { // the first calls fail, or still go the usual way
		pods, err := c.ListPods(t.Context())
		if err == nil && len(pods) == 2 {
			return
		}
		if err != nil && !IsUnavailable(err) {
			t.Fatalf("%+v, %v", pods, err)
		}
	}
}

// v1alpha2 has no streams, and is not asked.
func TestListStreamsOfV1alpha2(t *testing.T) {
	socket := socketIn(t)
	f := withStreams()
	f.answers = withLists().answers
	t.Cleanup(serve(t, f, socket, apiV1alpha2))
	c := connect(t, socket, streaming)
	if pods, err := c.ListPods(context.Background()); err != nil || len(pods) != 1 {
		t.Errorf("%+v, %v", pods, err)
	}
}
