package checks

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
)

func TestDefault(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.String() + " " + r.UserAgent()))
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	target := probe.Target{Host: at.Hostname(), Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}}}
	set := Default(Config{})
	target.Handler.HTTPGet = &corev1.HTTPGetAction{Path: "a?b=1", Port: intstr.FromString("web")}
	if got := set[probe.HTTPGet](t.Context(), target); got.Output != "/a?b=1 "+DefaultUserAgent {
		t.Errorf("http: %+v", got)
	}
	target.Handler.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("web")}
	if got := set[probe.TCPSocket](t.Context(), target); got.Result != probe.Success {
		t.Errorf("tcp: %+v", got)
	}
	target.Handler.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("none")}
	if got := set[probe.TCPSocket](t.Context(), target); got.Err == nil {
		t.Errorf("no such port: %+v", got)
	}
	if _, ok := set[probe.Exec]; ok {
		t.Error("an exec check without an Execer")
	}
}
