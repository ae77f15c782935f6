package runtimetest_test

import (
	"context"
	"fmt"

	"nodekit.dev/runtime/runtimetest"
)

// printer reports to standard output; tests pass their *testing.T.
type printer struct{}

func (printer) Helper() {}

func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// An agent that removes a sandbox over a running container is told so.
func Example() {
	ctx := context.Background()
	w := runtimetest.NewWorld(printer{}, runtimetest.Config{})
	image := w.AddImage("registry.example/web:1", runtimetest.RegistryImage{})

	sandbox := runtimetest.SandboxFor("default", "web", "uid-1", 0)
	sandboxID, _ := w.RunSandbox(ctx, sandbox)
	containerID, _ := w.CreateContainer(ctx, sandboxID, runtimetest.ContainerFor(sandbox, "nginx", image, 0), sandbox)
	_ = w.StartContainer(ctx, containerID)

	pod, _ := w.LookPod(ctx, "uid-1")
	fmt.Println(pod.Name, pod.Containers[0].Name, pod.Containers[0].State)
	_ = w.StopSandbox(ctx, sandboxID)
	// Output:
	// web nginx running
	// runtimetest: rule sandbox-over-running broken by pod default/web (UID uid-1) container nginx: sandbox sandbox-1 is stopped while container container-2 runs in it
}
