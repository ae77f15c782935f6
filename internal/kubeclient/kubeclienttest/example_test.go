package kubeclienttest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// server answers every request with one Node.
type server struct{}

func (server) RoundTrip(req *http.Request) (*http.Response, error) {
	fmt.Println(req.Method, req.URL.Path)
	body := io.NopCloser(strings.NewReader(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge-1"}}`))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
}

func ExampleClient() {
	core := kubeclienttest.Client(corev1.SchemeGroupVersion, server{}, corev1.AddToScheme)
	var node corev1.Node
	err := core.Get().Resource("nodes").Name("edge-1").Do(context.Background()).Into(&node)
	fmt.Println(node.Name, err)
	// Output:
	// GET /api/v1/nodes/edge-1
	// edge-1 <nil>
}
