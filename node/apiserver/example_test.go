package apiserver_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/node/apiserver"
)

func Example() {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"edge-7"},"spec":{"podCIDR":"10.1.0.0/24"}}`)
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	cfg := apiserver.Default()
	cfg.REST = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	client, err := apiserver.New(cfg, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseAll()

	ctx := apiserver.Context(context.Background(), nil)
	var node corev1.Node
	err = client.Lane(apiserver.LaneNodeStatus).Core().Get().Resource("nodes").Name("edge-7").
		VersionedParams(&metav1.GetOptions{ResourceVersion: "0"}, metav1.ParameterCodec).Do(ctx).Into(&node)
	fmt.Println(node.Name, node.Spec.PodCIDR, err)
	// Output: edge-7 10.1.0.0/24 <nil>
}
