package podspec_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/node/podspec"
)

func Example() {
	cfg := podspec.Default()
	cfg.MachineMemory = 4 << 30
	cfg.ContainerHash = lifecycle.ContainerHash
	builder, err := podspec.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", Image: "web:1", Env: []corev1.EnvVar{{Name: "WHO", Value: "world"}}, Args: []string{"hello", "$(WHO)"},
	}}}}
	pod.Name, pod.Namespace, pod.UID = "web", "default", "1234"

	sandbox, err := builder.Sandbox(podactor.SandboxSpecRequest{Pod: pod})
	fmt.Println(sandbox.CgroupParent, sandbox.LogDirectory, err)
	container, err := builder.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "web", ImageRef: "sha256:1"})
	fmt.Println(container.Args, container.LogPath, err)

	// A field that the agent does not act on is named, never ignored.
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	fmt.Println(builder.Check(pod))
	// Output:
	// /kubepods/besteffort/pod1234 /var/log/pods/default_web_1234 <nil>
	// [hello world] web/0.log <nil>
	// spec.containers[0].resources.claims: not acted on yet by this agent
}
