package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
)

// own are the routes that the socket has by itself.
func (s *Server) own() []Route {
	return []Route{
		{Pattern: "GET /healthz", Handler: http.HandlerFunc(ok)},
		{Pattern: "GET /pods", Handler: http.HandlerFunc(s.pods)},
		{Pattern: "GET /debug/pods", Handler: http.HandlerFunc(s.debugPods)},
		{Pattern: "GET /debug/pods/{uid}", Handler: http.HandlerFunc(s.trace)},
	}
}

// withOwn adds the socket's own routes to those given. A path that the API of
// the node has too is theirs, so that both can share one set of routes; what
// nodectl asks for is nobody's to replace.
func withOwn(given, own []Route) []Route {
	routes := slices.Clone(given)
	for _, r := range own {
		taken := slices.ContainsFunc(given, func(g Route) bool { return g.path() == r.path() })
		if !taken || strings.HasPrefix(r.path(), "/debug/") {
			routes = append(routes, r)
		}
	}
	return routes
}

// pods serves the pods as the stock kubelet does.
func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, view := range s.sorted() {
		list.Items = append(list.Items, withStatus(view))
	}
	WriteJSON(w, list)
}

// withStatus copies the pod, as the view shares it with its actor.
func withStatus(view node.PodView) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(view.UID), Namespace: view.Namespace, Name: view.Name,
	}}
	if view.Pod != nil {
		pod = *view.Pod
	}
	pod.Status = view.Status
	return pod
}

// PodLine is one pod as /debug/pods shows it.
type PodLine struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Source    string `json:"source,omitempty"`
	// Machine is the phase of the pod machine, such as "Running".
	Machine string          `json:"machine"`
	Leaving bool            `json:"leaving,omitempty"`
	Phase   corev1.PodPhase `json:"phase"`
	Reason  string          `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	Ready   string          `json:"ready"` // "2/3"
	// Restarts is the sum over all containers.
	Restarts int32 `json:"restarts"`
	// StartTime is when the agent took the pod on; nil before.
	StartTime *metav1.Time `json:"startTime,omitempty"`
	IPs       []string     `json:"ips,omitempty"`
	// Waiting lists "container: Reason" of containers that wait.
	Waiting []string `json:"waiting,omitempty"`
}

func (s *Server) debugPods(w http.ResponseWriter, _ *http.Request) {
	lines := []PodLine{}
	for _, view := range s.sorted() {
		lines = append(lines, lineOf(view))
	}
	WriteJSON(w, lines)
}

func lineOf(view node.PodView) PodLine {
	line := PodLine{
		UID: view.UID, Namespace: view.Namespace, Name: view.Name, Source: view.Source,
		Machine: view.Phase.String(), Leaving: view.Leaving,
		Phase: view.Status.Phase, Reason: view.Status.Reason, Message: view.Status.Message,
		StartTime: view.Status.StartTime,
	}
	ready := 0
	for _, group := range [][]corev1.ContainerStatus{view.Status.InitContainerStatuses, view.Status.ContainerStatuses} {
		for _, c := range group {
			line.Restarts += c.RestartCount
			if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
				line.Waiting = append(line.Waiting, c.Name+": "+c.State.Waiting.Reason)
			}
		}
	}
	for _, c := range view.Status.ContainerStatuses {
		if c.Ready {
			ready++
		}
	}
	line.Ready = readiness(ready, len(view.Status.ContainerStatuses))
	for _, ip := range view.Status.PodIPs {
		line.IPs = append(line.IPs, ip.IP)
	}
	return line
}

func (s *Server) trace(w http.ResponseWriter, r *http.Request) {
	trace, found, err := s.agent.Trace(r.PathValue("uid"))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case !found:
		http.Error(w, "no pod has the UID "+r.PathValue("uid")+"; GET /debug/pods lists them", http.StatusNotFound)
	default:
		WriteJSON(w, trace)
	}
}

func (s *Server) sorted() []node.PodView { return Sorted(s.agent.Pods()) }

// Sorted puts pods in the order of their names.
func Sorted(views []node.PodView) []node.PodView {
	slices.SortFunc(views, func(a, b node.PodView) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return views
}

// WriteJSON answers with v as JSON.
func WriteJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the client is gone: nobody to tell
}

func readiness(ready, of int) string { return fmt.Sprintf("%d/%d", ready, of) }

// WriteText answers with text.
func WriteText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(text)) // the client is gone: nobody to tell
}
