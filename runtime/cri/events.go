package cri

import (
	"context"
	"errors"
	"io"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// errStreamEnded is why Events returns when the runtime ends the stream.
var errStreamEnded = errors.New("the runtime ended the stream")

// Events calls event with the pod and the time of each thing that happens, until
// ctx ends or the stream breaks, and returns why; it never returns nil. It
// calls opened once, when the stream is open: what happened before is lost.
// The UID is empty where the runtime does not tell whose event it is. Both
// functions run on the caller's goroutine. A runtime without events gives an
// error with Unimplemented, before or after opened.
func (c *Client) Events(ctx context.Context, opened func(), event func(runtime.Hint)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream on every way out
	start := time.Now()
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	c.conn.observe(opEvents, nil, start, err)
	if err != nil {
		return wrap(opEvents, "", err)
	}
	opened()
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			err = errStreamEnded
		}
		if err != nil {
			return wrap(opEvents, "", err)
		}
		event(runtime.Hint{UID: eventUID(e), At: nanoTime(e.GetCreatedAt())})
	}
}

const opEvents = "GetContainerEvents"

// eventUID finds the pod of an event; it may be gone already.
func eventUID(e *runtimeapi.ContainerEventResponse) string {
	if uid := e.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		return uid
	}
	for _, ctr := range e.GetContainersStatuses() {
		if uid := ctr.GetLabels()[runtime.LabelPodUID]; uid != "" {
			return uid
		}
	}
	return ""
}
