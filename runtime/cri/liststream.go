package cri

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// listStream is a list that comes in parts (KEP-5825), so that it may be longer
// than one message of the runtime's can be.
type listStream[R, T any] struct {
	conn *conn
	// name is the list's call, for the observer, whichever way it was read.
	name  string
	open  func(ctx context.Context) (grpc.ServerStreamingClient[R], error)
	items func(*R) []T
}

// read gives the whole list: a stream that breaks gives none of it. ok is false
// where the runtime has no such stream, or the configuration does not ask for
// it. A context with a bound is the caller's part.
func (l listStream[R, T]) read(ctx context.Context) (all []T, ok bool, err error) {
	if !l.conn.listStreams(ctx) {
		return nil, false, nil
	}
	start := time.Now()
	all, err = l.receive(ctx)
	if status.Code(err) == codes.Unimplemented {
		l.conn.noListStreams()
		return nil, false, nil
	}
	l.conn.observe(l.name, nil, start, err)
	return all, true, err
}

func (l listStream[R, T]) receive(ctx context.Context) (all []T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream on every way out
	stream, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, l.items(part)...)
	}
}
