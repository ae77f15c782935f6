package kubeletapi

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/server"
	"nodekit.dev/runtime"
)

func listOf(items []corev1.Pod) corev1.PodList {
	return corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: items}
}

// pods are those that a source named, with the newest status.
func (a *api) pods(w http.ResponseWriter, _ *http.Request) {
	items := []corev1.Pod{}
	for _, view := range server.Sorted(a.parts.Pods.Pods()) {
		if view.Pod != nil {
			items = append(items, withStatus(view))
		}
	}
	server.WriteJSON(w, listOf(items))
}

// withStatus copies the pod, as the view shares it with its actor.
func withStatus(view node.PodView) corev1.Pod {
	pod := *view.Pod
	pod.Status = view.Status
	return pod
}

// runningPods are those of which the runtime runs a container now, whoever
// started it.
func (a *api) runningPods(w http.ResponseWriter, r *http.Request) {
	pods, err := a.parts.Runtime.ListPods(r.Context())
	if err != nil {
		writeRuntimeError(w, err)
		return
	}
	items := []corev1.Pod{}
	for _, p := range pods {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(p.UID), Namespace: p.Namespace, Name: p.Name}}
		for _, c := range p.Containers {
			if c.State == runtime.ContainerRunning {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
			}
		}
		if len(pod.Spec.Containers) > 0 {
			items = append(items, pod)
		}
	}
	server.WriteJSON(w, listOf(items))
}

// allocated are the pods as they were admitted, without a status.
func (a *api) allocated() []corev1.Pod {
	items := []corev1.Pod{}
	add := func(pod *corev1.Pod) {
		allocated := *pod
		allocated.Status = corev1.PodStatus{}
		items = append(items, allocated)
	}
	if a.parts.Allocated != nil {
		for _, pod := range a.parts.Allocated() {
			add(pod)
		}
		return items
	}
	for _, view := range server.Sorted(a.parts.Pods.Pods()) {
		if view.Pod != nil {
			add(view.Pod)
		}
	}
	return items
}

func (a *api) allocatedPods(w http.ResponseWriter, _ *http.Request) {
	server.WriteJSON(w, listOf(a.allocated()))
}

func (a *api) allocatedPod(w http.ResponseWriter, r *http.Request) {
	namespace, name, uid := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("uid")
	for _, pod := range a.allocated() {
		if pod.Namespace == namespace && pod.Name == name && (uid == "" || string(pod.UID) == uid) {
			pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
			server.WriteJSON(w, pod)
			return
		}
	}
	http.Error(w, "pod not found", http.StatusNotFound)
}
