package runtime_test

import (
	"fmt"

	"nodekit.dev/runtime"
)

func Example() {
	pod := runtime.Pod{
		UID:       "11",
		Sandboxes: []runtime.Sandbox{{ID: "s1", Attempt: 1, Ready: true}, {ID: "s0"}},
		Containers: []runtime.Container{
			{ID: "c1", Name: "web", Attempt: 1, State: runtime.ContainerRunning},
			{ID: "c0", Name: "web", State: runtime.ContainerExited, ExitCode: 3},
		},
	}
	sandbox, _ := pod.NewestSandbox()
	web, _ := pod.NewestContainer("web")
	fmt.Println(sandbox.ID, web.ID, web.State, pod.Empty())
	// Output: s1 c1 running false
}
