package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Recorder is a proxy in front of a CRI socket that keeps the calls that went
// through it. It passes messages on as the bytes that they are.
type Recorder struct {
	Socket string

	server  *grpc.Server
	runtime *grpc.ClientConn
	served  chan error

	mu    sync.Mutex
	calls []Call
}

// Call is one call that was made, in the order of their ends.
type Call struct {
	method  string // such as RunPodSandbox
	request []byte
}

// Record starts a proxy on a socket of its own in front of another one.
func Record(ctx context.Context, socket, front string) (*Recorder, error) {
	runtime, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", front)
	if err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	r := &Recorder{Socket: front, runtime: runtime, served: make(chan error, 1)}
	r.server = grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(r.pass))
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
}

// Close ends the proxy and every call through it.
func (r *Recorder) Close() error {
	r.server.Stop()
	return errors.Join(<-r.served, r.runtime.Close())
}

// Take gives the calls since the last take.
func (r *Recorder) Take() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.calls
	r.calls = nil
	return taken
}

// pass hands one call on: a request, and replies until the runtime is done.
func (r *Recorder) pass(_ any, in grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(in)
	if !ok {
		return status.Error(codes.Internal, "a call without a method")
	}
	ctx := in.Context()
	if md, found := metadata.FromIncomingContext(ctx); found {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	out, err := r.runtime.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	var request []byte
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	err = errors.Join(out.SendMsg(&request), out.CloseSend())
	for err == nil {
		var reply []byte
		if err = out.RecvMsg(&reply); err == nil {
			err = in.SendMsg(&reply)
		}
	}
	r.mu.Lock()
	r.calls = append(r.calls, Call{method: path.Base(method), request: request})
	r.mu.Unlock()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// rawCodec takes messages as bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("not bytes: %T", v)
	}
	return *b, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("not bytes: %T", v)
	}
	*b = slices.Clone(data)
	return nil
}
