package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"nodekit.dev/internal/podhttp"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/probe"
)

// drainLimit is how much of an answer is read before the connection is closed,
// bytes: a hook's answer is of no use to anyone.
const drainLimit = 10 << 10

// newClient makes a client for requests to pods: straight to them whatever
// proxy the agent's environment names, and without a check of certificates,
// which pods sign themselves.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:        (&net.Dialer{}).DialContext,
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			DisableKeepAlives:  true,
			DisableCompression: true,
		},
		CheckRedirect: podhttp.FollowSameHost,
	}
}

func (r *Runner) runHTTPGet(ctx context.Context, req podactor.HandlerRequest) error {
	at, err := targetURL(req)
	if err != nil {
		return fmt.Errorf("httpGet: %w", err)
	}
	headers := podhttp.Header(req.Handler.HTTPGet.HTTPHeaders, r.cfg.UserAgent)
	err = r.get(ctx, at, headers)
	if at.Scheme == "https" && errors.Is(err, http.ErrSchemeMismatch) {
		// Hooks once ignored the scheme, so some that ask for HTTPS meet a plain
		// server. They still work, but no secret goes over such a connection.
		r.log.Warn("lifecycle hook asks for HTTPS of a server that speaks HTTP",
			"pod", req.Pod.Namespace+"/"+req.Pod.Name, "uid", req.Pod.UID, "container", req.Container)
		at.Scheme = "http"
		headers.Del("Authorization")
		err = r.get(ctx, at, headers)
	}
	if err != nil {
		return fmt.Errorf("httpGet: %w", err) // the client's errors name the URL
	}
	return nil
}

func (r *Runner) get(ctx context.Context, target *url.URL, headers http.Header) error {
	httpReq, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	httpReq.Header = headers
	httpReq.Host = headers.Get("Host")
	resp, err := r.client.Do(httpReq)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written; the answer is here
	_, _ = io.CopyN(io.Discard, resp.Body, drainLimit)
	return nil
}

// targetURL is whom the hook asks, and for what: the pod's own address where the
// handler names no host.
func targetURL(req podactor.HandlerRequest) (*url.URL, error) {
	get, of := req.Handler.HTTPGet, probe.Target{}
	if len(req.PodIPs) > 0 {
		of.Host = req.PodIPs[0]
	}
	if c := lifecycle.FindContainer(req.Pod, req.Container); c != nil {
		of.Ports = c.Ports
	}
	address, err := of.Address(get.Host, get.Port)
	if err != nil {
		return nil, err
	}
	return podhttp.URL(get, address)
}
