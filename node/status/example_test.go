package status_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/podapitest"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/status"
)

// quietNode is a node without static pods.
type quietNode struct{}

func (quietNode) Ready() <-chan struct{}                { return nil }
func (quietNode) Exists(string) bool                    { return false }
func (quietNode) Remind(string, *corev1.PodStatus) bool { return false }

// The writer makes the API server's pods as the node says they are.
func ExampleWriter() {
	api := podapitest.New() // in an agent: a client of the API server
	web := api.Create(pod("u1", "web"))

	written := make(chan struct{})
	writer, err := status.New(status.DefaultConfig("worker-1"), status.Parts{
		API:      api.Client(),
		Observer: status.Observer{Called: func(verb string, err error) { fmt.Println(verb, err); close(written) }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	writer.Attach(quietNode{}) // in an agent: the *node.Node
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- writer.Run(ctx) }()

	writer.PodSeen(web)                 // node/apipods: what the API server has
	writer.PodStatus(node.StatusUpdate{ // the node: how the pod is
		UID: "u1", Namespace: "default", Name: "web", Pod: web,
		Phase: lifecycle.Running, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	})
	<-written
	cancel()
	fmt.Println(<-done)
	fmt.Println(api.Pod("default", "web").Status.Phase)
	// Output:
	// patch <nil>
	// context canceled
	// Running
}
