package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Client is the connection to one API server. All methods are safe for
// concurrent use. Use New.
type Client struct {
	cfg       Config
	log       *slog.Logger
	heartbeat *connections
	rest      *connections // all that is no heartbeat
	lanes     [laneCount]Lane
	suspect   chan struct{} // readable: see whether rest is alive
	probeURL  string
	patience  time.Duration // for the answer to a probe
}

// New checks the configuration. It does no I/O: the first request connects. A
// nil log is silence.
func New(cfg Config, log *slog.Logger) (*Client, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("API server client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("API server client: %w", err)
	}
	c := &Client{
		cfg: cfg, log: log,
		suspect: make(chan struct{}, 1), probeURL: base.JoinPath("version").String(), patience: probePatience,
	}
	c.heartbeat, c.rest = newConnections(cfg, c.suspectAll), newConnections(cfg, c.suspectAll)
	if err := c.makeLanes(); err != nil {
		return nil, fmt.Errorf("API server client: %w", err)
	}
	return c, nil
}

// Run looks after the connections until ctx ends, then closes them. Requests
// work without it; only connections are then not asked for a sign of life.
func (c *Client) Run(ctx context.Context) error {
	defer c.CloseAll()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.suspect:
			c.probe(ctx)
		}
	}
}

// Lane returns the client for one kind of traffic.
func (c *Client) Lane(id LaneID) Lane { return c.lanes[id] }

// HeartbeatFailed is to be called when a heartbeat failed twice in a row. It
// closes the connections of LaneLease and LaneNodeStatus, and has Run ask the
// API server for its version on the others: what does not answer within 5 s is
// closed as well, long before pings would tell. Connections that are alive
// stay. Without HTTP/2 it closes all of them. It never blocks.
func (c *Client) HeartbeatFailed() {
	if c.cfg.HTTP2.Disabled {
		c.log.Warn("heartbeat failed: closing all connections to the API server", "closed", c.closeAll())
		return
	}
	c.log.Warn("heartbeat failed: connecting anew for heartbeats", "closed", c.heartbeat.closeAll())
	c.rest.closeIdle()
	c.suspectAll()
}

// suspectAll has Run ask for a sign of life on the connections that are no
// heartbeats.
func (c *Client) suspectAll() {
	select {
	case c.suspect <- struct{}{}:
	default:
	}
}

// CloseAll closes every connection; requests on them fail, and later ones
// connect anew. It is for credentials that changed, and for the end. It may be
// called again.
func (c *Client) CloseAll() { c.closeAll() }

func (c *Client) closeAll() int { return c.heartbeat.closeAll() + c.rest.closeAll() }

// CloseIdle closes the connections that no request is on.
func (c *Client) CloseIdle() {
	c.heartbeat.closeIdle()
	c.rest.closeIdle()
}

func (c *Client) makeLanes() error {
	groups := append(stockGroups(), c.cfg.Groups...)
	codecs, err := codecs(groups)
	if err != nil {
		return err
	}
	warnings := &warnings{log: c.log}
	shared := newLimiter(c.cfg.QPS, c.cfg.Burst, c.cfg.Observer.Throttled)
	events := newLimiter(c.cfg.EventQPS, c.cfg.EventBurst, c.cfg.Observer.Throttled)
	for id := range laneCount {
		limits := shared
		if id == LaneEvents {
			limits = events
		}
		lane := Lane{groups: map[schema.GroupVersion]rest.Interface{}}
		client := &http.Client{Transport: c.through(id)}
		for _, g := range groups {
			config := groupConfig(c.cfg, g, codecs)
			config.QPS, config.RateLimiter = -1, limits.lane(id) // no limiter but ours
			config.WarningHandlerWithContext = warnings
			lane.groups[g.Version], err = rest.RESTClientForConfigAndClient(config, client)
			if err != nil {
				return fmt.Errorf("API group %s: %w", g.Version, err)
			}
		}
		c.lanes[id] = lane
	}
	return nil
}

// through is the way of a lane's requests to its connections.
func (c *Client) through(id LaneID) http.RoundTripper {
	to := c.rest
	if id.heartbeat() {
		to = c.heartbeat
	}
	if c.cfg.Observer.Request == nil {
		return to
	}
	return observed{to: to, lane: id, tell: c.cfg.Observer.Request}
}

// observed tells about each request.
type observed struct {
	to   *connections
	lane LaneID
	tell func(Request)
}

func (o observed) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := o.to.RoundTrip(req)
	told := Request{Lane: o.lane, Method: req.Method, Host: req.URL.Host, Path: req.URL.Path, Err: err, Took: time.Since(start)}
	if resp != nil {
		told.Code = resp.StatusCode
	}
	o.tell(told)
	return resp, err
}
