package cri_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nodekit.dev/runtime/cri"
)

// A client is made without a runtime; what the runtime is missing shows in
// the first call.
func Example() {
	client, err := cri.New(cri.Config{Endpoint: "unix:///nonexistent/runtime.sock", RequestTimeout: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	_, err = client.LookPod(context.Background(), "8d7fc6ff-8b3b-4b4e-9d3c-6f6a1c1d2e3f")
	var failed interface{ Unavailable() bool } // or cri.IsUnavailable(err)
	if errors.As(err, &failed) && failed.Unavailable() {
		fmt.Println("the runtime is not there; try again later")
	}
	// Output: the runtime is not there; try again later
}
