package csi

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Sockets is the default Connector: gRPC over the driver's Unix socket.
type Sockets struct{}

// Connect implements Connector.
func (Sockets) Connect(_, endpoint string) (grpc.ClientConnInterface, func() error, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	conn, err := grpc.NewClient("passthrough:///"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, nil, err
	}
	return conn, conn.Close, nil
}

// call makes one call of a driver, in one of its slots, and tells the observer.
func (p *Plugin) call(ctx context.Context, d *driver, method string, do func(context.Context) error) error {
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for other calls of CSI driver %s: %w", d.Name, ctx.Err())
	}
	defer func() { <-d.slots }()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.CallTimeout)
	defer cancel()
	d.begin()
	defer d.end()
	start := time.Now()
	err := do(ctx)
	if p.cfg.Observer.Call != nil {
		p.cfg.Observer.Call(Call{
			Driver: d.Name, Method: "/csi.v1.Node/" + method, Code: status.Code(err).String(), Took: time.Since(start), Err: err,
		})
	}
	return err
}
