package runtimetest

import (
	"strconv"

	"nodekit.dev/runtime"
)

// SandboxFor is a sandbox configuration with the stock labels, for tests that
// have no node/podspec at hand.
func SandboxFor(namespace, name, uid string, attempt uint32) runtime.SandboxConfig {
	return runtime.SandboxConfig{
		Name:      name,
		Namespace: namespace,
		UID:       uid,
		Attempt:   attempt,
		Hostname:  name,
		Labels: map[string]string{
			runtime.LabelPodName:      name,
			runtime.LabelPodNamespace: namespace,
			runtime.LabelPodUID:       uid,
		},
		Annotations: map[string]string{runtime.AnnotationConfigSource: "file"},
		Security: runtime.SandboxSecurity{Namespaces: runtime.Namespaces{
			Network: runtime.NamespacePod, PID: runtime.NamespaceContainer, IPC: runtime.NamespacePod,
		}},
	}
}

// ContainerFor is the configuration of a container in such a sandbox, with the
// stock labels and annotations. image is what a pull returned.
func ContainerFor(sandbox runtime.SandboxConfig, name, image string, attempt uint32, command ...string) runtime.ContainerConfig {
	return runtime.ContainerConfig{
		Name:    name,
		Attempt: attempt,
		Image:   runtime.Image{Ref: image, Requested: image},
		Command: command,
		Labels: map[string]string{
			runtime.LabelPodName:       sandbox.Name,
			runtime.LabelPodNamespace:  sandbox.Namespace,
			runtime.LabelPodUID:        sandbox.UID,
			runtime.LabelContainerName: name,
		},
		Annotations: map[string]string{
			runtime.AnnotationContainerHash:            "0",
			runtime.AnnotationRestartCount:             strconv.Itoa(int(attempt)),
			runtime.AnnotationTerminationMessagePath:   "/dev/termination-log",
			runtime.AnnotationTerminationMessagePolicy: "File",
		},
		LogPath:  name + "_" + strconv.Itoa(int(attempt)) + ".log",
		Security: runtime.ContainerSecurity{Namespaces: sandbox.Security.Namespaces},
	}
}
