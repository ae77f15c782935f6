package events_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"nodekit.dev/node"
	"nodekit.dev/node/events"
	"nodekit.dev/node/lifecycle"
)

func Example() {
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Event","apiVersion":"v1"}`)
		got <- req.Method + " " + req.URL.Path
	}))
	defer server.Close()
	scheme := runtime.NewScheme()
	gv := corev1.SchemeGroupVersion
	err := corev1.AddToScheme(scheme)
	client, clientErr := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &gv, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
	}})
	cfg := events.Default()
	cfg.NodeName = "n1"
	recorder, recorderErr := events.New(cfg, client)
	if err != nil || clientErr != nil || recorderErr != nil {
		fmt.Println(err, clientErr, recorderErr)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- recorder.Run(ctx) }()

	recorder.PodEvent(node.PodEvent{UID: "1", Namespace: "default", Name: "web", Event: lifecycle.Event{
		Type: lifecycle.EventNormal, Reason: "Started", Message: "Container started",
	}})
	fmt.Println(<-got)
	cancel()
	fmt.Println(<-done)
	// Output:
	// POST /api/v1/namespaces/default/events
	// context canceled
}
