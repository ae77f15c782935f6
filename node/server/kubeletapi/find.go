package kubeletapi

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// named is the pod that a path names. Nothing of the request goes further than
// this comparison.
func (a *api) named(r *http.Request) (node.PodView, bool) {
	return pick(a.parts.Pods.Pods(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("uid"))
}

// pick finds a pod by name, and by UID where one is given. Of two with a name,
// the one that is to stay is meant, and of those the one that is further.
func pick(views []node.PodView, namespace, name, uid string) (node.PodView, bool) {
	var best node.PodView
	found := false
	for _, v := range views {
		if v.Pod == nil || v.Namespace != namespace || v.Name != name || uid != "" && v.UID != uid {
			continue
		}
		if !found || better(v, best) {
			best, found = v, true
		}
	}
	return best, found
}

func better(a, b node.PodView) bool {
	if a.Leaving != b.Leaving {
		// One that waits for the other to go has no containers to ask for yet.
		return a.Leaving == (stays(a, b).Phase == lifecycle.Queued)
	}
	return a.Phase > b.Phase
}

// stays is the one of the two that is not leaving.
func stays(a, b node.PodView) node.PodView {
	if a.Leaving {
		return b
	}
	return a
}

// containerSpec is what routes need of a container of any kind.
type containerSpec struct {
	name string
	tty  bool
}

func specOf(pod *corev1.Pod, name string) (containerSpec, bool) {
	for _, group := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range group {
			if c.Name == name {
				return containerSpec{name: c.Name, tty: c.TTY}, true
			}
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == name {
			return containerSpec{name: c.Name, tty: c.TTY}, true
		}
	}
	return containerSpec{}, false
}

// running is the container of that name that runs now.
func running(pod runtime.Pod, name string) (runtime.Container, error) {
	for _, c := range pod.Containers {
		if c.Name == name && c.State == runtime.ContainerRunning {
			return c, nil
		}
	}
	return runtime.Container{}, fmt.Errorf("container not found (%q)", name)
}

// writeRuntimeError answers with the class of what the runtime said.
func writeRuntimeError(w http.ResponseWriter, err error) {
	var unknown interface{ NotFound() bool }
	var busy interface{ TooMany() bool }
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, &unknown) && unknown.NotFound():
		status = http.StatusNotFound
	case errors.As(err, &busy) && busy.TooMany():
		w.Header().Set("Retry-After", "60") // how long runtimes keep an address that nobody came for
		status = http.StatusTooManyRequests
	}
	http.Error(w, err.Error(), status)
}
