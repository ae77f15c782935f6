package cri

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What CRI runtimes and the stock kubelet agree on.
const (
	maxMessage        = 16 << 20 // bytes
	minConnectTimeout = 5 * time.Second
	connectBaseDelay  = 100 * time.Millisecond
	connectMaxDelay   = 3 * time.Second
)

// errClosed is what calls on a closed client end with.
var errClosed = errors.New("the CRI client is closed")

// errNoID is for a runtime that breaks the contract.
var errNoID = errors.New("the runtime gave no ID")

// conn is one endpoint: a gRPC connection that is made by the first call, and
// the API version spoken over it. It is the grpc.ClientConnInterface of the
// generated clients, so that each call goes out under the right version.
type conn struct {
	endpoint string
	pinned   string // API version; empty: probe
	streams  bool   // Config.StreamLists
	probe    probeFunc
	observer Observer
	probing  chan struct{} // held by the one call that probes

	mu     sync.Mutex
	cc     *grpc.ClientConn
	closed bool
	dials  int    // connections made so far
	known  *facts // of the present connection; nil: not known
}

// facts is what a runtime says about itself; it holds for one connection,
// because a runtime that comes back may be another version.
type facts struct {
	api      string
	version  Version
	features *Features // nil: not asked for yet
	// noStreams says that the runtime has no lists as streams.
	noStreams bool
}

// probeFunc asks the cheapest call of a service over an API version.
type probeFunc func(ctx context.Context, cc grpc.ClientConnInterface) (Version, error)

func newConn(endpoint string, cfg Config, probe probeFunc) *conn {
	return &conn{endpoint: endpoint, pinned: cfg.APIVersion, streams: cfg.StreamLists, observer: cfg.Observer, probe: probe, probing: make(chan struct{}, 1)}
}

// observe tells how a call that began at start ended.
func (c *conn) observe(method string, args any, start time.Time, err error) {
	if c.observer.Called == nil {
		return
	}
	call := Call{Method: method[strings.LastIndexByte(method, '/')+1:], Took: time.Since(start), Err: err}
	if sandbox, ok := args.(*runtimeapi.RunPodSandboxRequest); ok {
		call.Handler = sandbox.RuntimeHandler
	}
	c.observer.Called(call)
}

// Invoke implements grpc.ClientConnInterface.
func (c *conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) (err error) {
	defer func(start time.Time, asked any) { c.observe(method, asked, start, err) }(time.Now(), args)
	cc, api, err := c.ready(ctx)
	if err != nil {
		return err
	}
	args, err = fit(api, method, args)
	if err != nil {
		return err
	}
	err = cc.Invoke(ctx, versioned(api, method), args, reply, opts...)
	c.noteUnknownService(err)
	return err
}

// NewStream implements grpc.ClientConnInterface. Who opens the stream tells the
// observer: only it knows when the call is over.
func (c *conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	cc, api, err := c.ready(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := fit(api, method, nil); err != nil {
		return nil, err
	}
	return cc.NewStream(ctx, desc, versioned(api, method), opts...)
}

// ready gives the connection and the version to speak over it.
func (c *conn) ready(ctx context.Context) (*grpc.ClientConn, string, error) {
	f, err := c.facts(ctx)
	if err != nil {
		return nil, "", err
	}
	cc, err := c.dial()
	return cc, f.api, err
}

// dial gives the connection and makes it at the first call.
func (c *conn) dial() (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.cc != nil {
		return c.cc, nil
	}
	path, err := socketPath(c.endpoint)
	if err != nil {
		return nil, err
	}
	c.cc, err = grpc.NewClient("passthrough:///"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(c.dialSocket),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: connectBaseDelay, Multiplier: backoff.DefaultConfig.Multiplier,
				Jitter: backoff.DefaultConfig.Jitter, MaxDelay: connectMaxDelay,
			},
			MinConnectTimeout: minConnectTimeout,
		}))
	return c.cc, err
}

// dialSocket is called by gRPC for each new connection.
func (c *conn) dialSocket(ctx context.Context, path string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dials++
	c.known = nil
	return nc, nil
}

// facts gives what is known of the runtime and asks it where nothing is. One
// call asks, the others wait for it.
func (c *conn) facts(ctx context.Context) (facts, error) {
	if f, _ := c.remembered(); f != nil {
		return *f, nil
	}
	select {
	case c.probing <- struct{}{}:
		defer func() { <-c.probing }()
	case <-ctx.Done():
		return facts{}, status.FromContextError(ctx.Err()).Err()
	}
	f, before := c.remembered()
	if f != nil {
		return *f, nil
	}
	cc, err := c.dial()
	if err != nil {
		return facts{}, err
	}
	got, err := c.ask(ctx, cc)
	if err != nil {
		return facts{}, err
	}
	c.remember(got, before)
	return got, nil
}

// ask probes v1, and v1alpha2 where the runtime does not know v1 (k/k#97252).
func (c *conn) ask(ctx context.Context, cc grpc.ClientConnInterface) (facts, error) {
	if c.pinned != "" {
		v, err := c.probe(ctx, asVersion{cc, c.pinned})
		return newFacts(c.pinned, v), err
	}
	v, err := c.probe(ctx, asVersion{cc, apiV1})
	if status.Code(err) != codes.Unimplemented {
		return newFacts(apiV1, v), err
	}
	v, errAlpha := c.probe(ctx, asVersion{cc, apiV1alpha2})
	if errAlpha != nil {
		return facts{}, err // what v1 answered says more than the last resort
	}
	return newFacts(apiV1alpha2, v), nil
}

func newFacts(api string, v Version) facts {
	v.APIVersion = api
	return facts{api: api, version: v}
}

func (c *conn) remembered() (*facts, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known, c.dials
}

// remember keeps the answer unless a connection was made meanwhile: then it is
// not certain which of the two answered, and the next call asks again.
func (c *conn) remember(f facts, dials int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dials == dials {
		c.known = &f
	}
}

// learnFeatures adds to what is known of the present connection.
func (c *conn) learnFeatures(features Features) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known != nil {
		known := *c.known
		known.features = &features
		c.known = &known
	}
}

// listStreams says whether to read lists as streams. Where the runtime can not
// be asked who it is, the usual call of the list has the error.
func (c *conn) listStreams(ctx context.Context) bool {
	if !c.streams {
		return false
	}
	f, err := c.facts(ctx)
	return err == nil && !f.noStreams && f.api != apiV1alpha2
}

// noListStreams notes that the runtime of the present connection has none.
func (c *conn) noListStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known != nil {
		known := *c.known
		known.noStreams = true
		c.known = &known
	}
}

// noteUnknownService forgets the version when the runtime says that it does
// not know it (any more).
func (c *conn) noteUnknownService(err error) {
	if s, ok := status.FromError(err); ok && s.Code() == codes.Unimplemented && strings.Contains(s.Message(), "unknown service") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.known = nil
	}
}

// Close ends the connection for good.
func (c *conn) Close() error {
	c.mu.Lock()
	cc := c.cc
	c.cc, c.closed, c.known = nil, true, nil
	c.mu.Unlock()
	if cc == nil {
		return nil
	}
	return cc.Close()
}

// probeRuntime asks the runtime service who it is.
func probeRuntime(ctx context.Context, cc grpc.ClientConnInterface) (Version, error) {
	v, err := runtimeapi.NewRuntimeServiceClient(cc).Version(ctx, &runtimeapi.VersionRequest{Version: kubeletAPIVersion})
	if err != nil {
		return Version{}, err
	}
	if err := checkVersion(v); err != nil {
		return Version{}, err
	}
	return Version{RuntimeName: v.RuntimeName, RuntimeVersion: v.RuntimeVersion, RuntimeAPIVersion: v.RuntimeApiVersion}, nil
}

// probeImages asks an image service of its own, which has no Version call.
func probeImages(ctx context.Context, cc grpc.ClientConnInterface) (Version, error) {
	_, err := runtimeapi.NewImageServiceClient(cc).ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	return Version{}, err
}
