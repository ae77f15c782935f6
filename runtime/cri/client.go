package cri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Client talks to one CRI runtime. All methods are safe for concurrent use.
// Use New.
type Client struct {
	cfg     Config
	log     *slog.Logger
	conn    *conn // runtime service
	imgConn *conn // image service; the same conn where the endpoint is the same
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	strays  strays
}

// Version is the runtime's answer to the Version call.
type Version struct {
	RuntimeName       string // e.g. "containerd"
	RuntimeVersion    string // e.g. "v2.4.2"
	RuntimeAPIVersion string // what the runtime says of itself
	APIVersion        string // what this client speaks: "v1" or "v1alpha2"
}

// New checks the configuration. It does no I/O: the first call connects, and
// the connection is made anew for as long as the client is not closed.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cri client: %w", err)
	}
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, log: cfg.Log, conn: newConn(cfg.Endpoint, cfg, probeRuntime)}
	c.imgConn = c.conn
	if cfg.ImageEndpoint != cfg.Endpoint {
		c.imgConn = newConn(cfg.ImageEndpoint, cfg, probeImages)
	}
	c.runtime = runtimeapi.NewRuntimeServiceClient(c.conn)
	c.images = runtimeapi.NewImageServiceClient(c.imgConn)
	return c, nil
}

// Close ends the connections; calls in flight fail. It may be called again.
func (c *Client) Close() error {
	err := c.conn.Close()
	if c.imgConn != c.conn {
		err = errors.Join(err, c.imgConn.Close())
	}
	return err
}

// Probe connects, decides the API version of both services and checks that
// the runtime says who it is. It is not needed before other calls, which
// decide the version when they have to; it is there to fail early at start.
func (c *Client) Probe(ctx context.Context) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if _, err := c.conn.facts(ctx); err != nil {
		return fmt.Errorf("validate service connection: validate CRI v1 runtime API for endpoint %q: %w", c.cfg.Endpoint, err)
	}
	if _, err := c.imgConn.facts(ctx); err != nil {
		return fmt.Errorf("validate service connection: validate CRI v1 image API for endpoint %q: %w", c.cfg.ImageEndpoint, err)
	}
	return nil
}

// Version tells which runtime this is. The answer is asked for once for each
// connection, since it can change only with a restart of the runtime.
func (c *Client) Version(ctx context.Context) (Version, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	f, err := c.conn.facts(ctx)
	if err != nil {
		return Version{}, wrap("Version", c.cfg.Endpoint, err)
	}
	return f.version, nil
}

// within bounds a call by the request timeout.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.RequestTimeout)
}

// withinPlus bounds a call by the request timeout and what the call itself
// was given.
func (c *Client) withinPlus(ctx context.Context, extra time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.RequestTimeout+max(0, extra))
}

// checkVersion refuses an answer that leaves a field empty, as the stock
// kubelet does.
func checkVersion(v *runtimeapi.VersionResponse) error {
	var missing []string
	for _, f := range []struct{ name, value string }{
		{"Version", v.GetVersion()},
		{"RuntimeName", v.GetRuntimeName()},
		{"RuntimeVersion", v.GetRuntimeVersion()},
		{"RuntimeApiVersion", v.GetRuntimeApiVersion()},
	} {
		if f.value == "" {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not all fields are set in VersionResponse (missing %s)", strings.Join(missing, ", "))
	}
	return nil
}
