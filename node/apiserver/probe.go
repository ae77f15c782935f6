package apiserver

import (
	"context"
	"net/http"
	"time"
)

// probePatience is how long the API server may take to tell its version,
// which it does without asking anybody.
const probePatience = 5 * time.Second

// probe makes a request on the connections that are no heartbeats, and closes
// those that were written to and said nothing. It judges connections, not the
// API server: any answer will do, and so does another one that comes meanwhile.
func (c *Client) probe(ctx context.Context) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.probeURL, nil)
	if err != nil {
		return // the URL was checked by New
	}
	resp, err := c.rest.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
		return
	}
	if n := c.rest.dialer.closeSilent(start); n > 0 {
		c.log.Warn("connections to the API server are dead: closed", "closed", n, "err", err)
	}
}
