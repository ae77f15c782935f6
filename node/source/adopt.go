package source

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// Adopter finds the UID under which a pod runs already, so that a restart of
// the agent, a swap with the stock kubelet or a moved manifest restarts nothing.
type Adopter interface {
	// Adopt returns the UID of a running sandbox that was made from this
	// manifest, or "". An error means that it is not known: the source waits
	// and asks again. It may block until ctx ends.
	Adopt(ctx context.Context, req AdoptRequest) (uid string, err error)
}

// AdoptRequest describes a pod that is wanted.
type AdoptRequest struct {
	Namespace string
	Name      string // with the node's name behind it
	Source    string
	// Content is the hash of the manifest (AnnotationContent).
	Content string
	// Containers holds lifecycle.ContainerHash by the name of each container,
	// init containers included.
	Containers map[string]string
	// Foreign allows a sandbox without AnnotationContent, as the stock kubelet
	// makes them, when its containers match. It is false once this source has
	// named the pod: then another content is an edit.
	Foreign bool
}

// AdoptFrom is an Adopter that looks through a list of all pods of the
// runtime, such as node.Watcher's List.
func AdoptFrom(list func(context.Context) ([]runtime.Pod, error)) Adopter { return lister(list) }

type lister func(context.Context) ([]runtime.Pod, error)

func (l lister) Adopt(ctx context.Context, req AdoptRequest) (string, error) {
	pods, err := l(ctx)
	if err != nil {
		return "", err
	}
	return MatchRunning(req, pods), nil
}

// once makes an Adopter that lists at most once, for one reading of a source:
// a list costs what there are pods, and there are as many questions.
func (l lister) once() Adopter { return &snapshot{list: l} }

// snapshot is used by one goroutine.
type snapshot struct {
	list   lister
	listed bool
	pods   []runtime.Pod
}

func (s *snapshot) Adopt(ctx context.Context, req AdoptRequest) (string, error) {
	if !s.listed {
		pods, err := s.list(ctx)
		if err != nil {
			return "", err
		}
		s.pods, s.listed = pods, true
	}
	return MatchRunning(req, s.pods), nil
}

// MatchRunning returns the UID of the pod that the request describes; "": none
// is it. A pod with the very content is taken before a foreign one.
func MatchRunning(req AdoptRequest, pods []runtime.Pod) string {
	var foreign string
	for _, pod := range pods {
		sandbox, ok := pod.NewestSandbox()
		if !ok || !sandbox.Ready || pod.Namespace != req.Namespace || pod.Name != req.Name ||
			sandbox.Annotations[runtime.AnnotationConfigSource] != req.Source {
			continue
		}
		switch sandbox.Annotations[AnnotationContent] {
		case req.Content:
			return pod.UID
		case "":
			if req.Foreign && sameContainers(req.Containers, pod) {
				foreign = pod.UID
			}
		}
	}
	return foreign
}

// sameContainers says that every container of the runtime is one of those
// wanted, and that at least one is there. Init containers may be gone.
func sameContainers(want map[string]string, pod runtime.Pod) bool {
	for _, c := range pod.Containers {
		hash, known := want[c.Name]
		newest, _ := pod.NewestContainer(c.Name)
		if !known || newest.Annotations[runtime.AnnotationContainerHash] != hash {
			return false
		}
	}
	return len(pod.Containers) > 0
}

func adoptRequest(pod *corev1.Pod, content string, o origin, foreign bool) AdoptRequest {
	req := AdoptRequest{Namespace: pod.Namespace, Name: pod.Name, Source: o.source, Content: content, Containers: map[string]string{}, Foreign: foreign}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			req.Containers[list[i].Name] = lifecycle.ContainerHash(&list[i])
		}
	}
	return req
}
