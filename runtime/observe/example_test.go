package observe_test

import (
	"context"
	"fmt"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/observe"
)

// oneProcess is a runtime that knows a single pod and has no events, as an
// embedder who runs plain processes might have.
type oneProcess struct{}

func (oneProcess) pod() runtime.Pod {
	return runtime.Pod{UID: "uid-1", Name: "web", Containers: []runtime.Container{{ID: "42", State: runtime.ContainerRunning}}}
}

func (p oneProcess) ListPods(context.Context) ([]runtime.Pod, error) {
	return []runtime.Pod{p.pod()}, nil
}

func (p oneProcess) LookPod(context.Context, string) (runtime.Pod, error) { return p.pod(), nil }

func (oneProcess) Status(context.Context) (runtime.Status, error) {
	return runtime.Status{Name: "plain", RuntimeReady: true, NetworkReady: true}, nil
}

func (oneProcess) Events(ctx context.Context, _ func(), _ func(runtime.Hint)) error {
	<-ctx.Done()
	return ctx.Err()
}

func Example() {
	cfg := observe.DefaultConfig()
	cfg.Events = false // relist only
	o, err := observe.New(cfg, oneProcess{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- o.Run(ctx) }()

	for hint := range o.Hints() {
		if hint.UID == "" {
			continue // look at all pods; here there is one
		}
		pod, err := o.Look(ctx, hint.UID)
		fmt.Println(pod.Name, pod.Containers[0].State, err)
		break
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// web running <nil>
	// context canceled
}
