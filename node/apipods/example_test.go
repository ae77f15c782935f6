package apipods_test

import (
	"context"
	"fmt"

	"nodekit.dev/node"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/internal/podapitest"
)

// A source brings the pods of its node, first all of them, then what changes.
func ExampleSource() {
	api := podapitest.New() // in an agent: a client of the API server
	api.Create(pod("1", "web"))

	source, err := apipods.New(apipods.DefaultConfig("worker-1"), api.Client(), nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	updates := make(chan node.SourceUpdate)
	done := make(chan error)
	go func() { done <- source.Run(ctx, updates) }()

	update := <-updates
	fmt.Println(source.Name(), update.Partial, update.Pods[0].Name)
	cancel()
	fmt.Println(<-done)
	// Output:
	// api false web
	// context canceled
}
