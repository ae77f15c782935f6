package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
)

// HTTPConfig says which URL to read.
type HTTPConfig struct {
	Config
	// URL answers with one pod or a PodList, in YAML or JSON.
	URL string
	// Header is sent with each request.
	Header http.Header
	// Period is how often it is asked for. 0: 20 s. After a failure it is
	// asked for sooner: after 1 s, doubling up to Period.
	Period time.Duration
	// Client is nil for one of its own with a time limit of 10 s.
	Client *http.Client
}

// HTTP is a URL with pods. Use NewHTTP.
type HTTP struct {
	cfg    HTTPConfig
	client *http.Client
}

// NewHTTP checks the configuration.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	var err error
	if cfg.Config, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("source: URL %q: must be http:// or https:// with a host", cfg.URL)
	}
	if cfg.Period < 0 {
		return nil, fmt.Errorf("source: period %v: must be positive", cfg.Period)
	}
	if cfg.Period == 0 {
		cfg.Period = DefaultPeriod
	}
	client := cfg.Client
	if client == nil {
		// A transport of its own, so that two agents in one process share none.
		client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	}
	return &HTTP{cfg: cfg, client: client}, nil
}

// Name is "http".
func (h *HTTP) Name() string { return "http" }

// Run sends the pods of the URL until ctx ends.
func (h *HTTP) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	defer h.client.CloseIdleConnections()
	k := newKeeper(h.cfg.Config, h.Name())
	policy := backoff.Policy{Base: min(time.Second, h.cfg.Period), Max: h.cfg.Period}
	var last answer
	var failures backoff.State
	for {
		wait := h.cfg.Period
		if err := h.poll(ctx, k, &last); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			failures = failures.Fail(policy, time.Now(), err.Error())
			wait = failures.Delay
			h.complain(k, err, failures.Failures)
		} else {
			failures = backoff.State{}
			if update, changed := k.changed(); changed {
				select {
				case updates <- update:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		if err := tasks.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// complain tells about a failure: the problem once per kind of message, and in
// the log again after 2, 4, 8, ... failures in a row, so that an outage of
// days does not fill the disk.
func (h *HTTP) complain(k *keeper, err error, inARow int) {
	reason := ReasonUnreachable
	var adopt *adoptError
	if errors.As(err, &adopt) {
		reason = ReasonNotAdopted
	}
	before := len(k.reported)
	k.unreachable(h.cfg.URL, reason, err)
	if len(k.reported) == before && inARow&(inARow-1) == 0 {
		h.cfg.Log.Warn("URL with pods still fails; the pods it named stay", "source", h.Name(), "url", h.cfg.URL, "failures", inARow, "err", err)
	}
}

// adoptError is a failure to learn what runs already.
type adoptError struct{ error }

func (e *adoptError) Unwrap() error { return e.error }

// answer is what the URL said last.
type answer struct {
	etag string
	body []byte
}

// poll asks once. After an error nothing may be sent.
func (h *HTTP) poll(ctx context.Context, k *keeper, last *answer) error {
	got, fresh, err := h.get(ctx, last.etag)
	if err != nil || !fresh || (last.body != nil && bytes.Equal(got.body, last.body)) {
		if err == nil && fresh {
			last.etag = got.etag
		}
		return err
	}
	pods, errs, err := decodePods(got.body)
	if err != nil {
		return fmt.Errorf("answer of %s: %w", h.cfg.URL, err)
	}
	if err := h.take(ctx, k, pods, errs); err != nil {
		return &adoptError{err}
	}
	*last = got
	return nil
}

// take makes the answer's items the manifests of the keeper. They are known by
// the pod's name, so that an item that became invalid keeps its own pod.
func (h *HTTP) take(ctx context.Context, k *keeper, pods []decoded, errs []error) error {
	var keys []string
	k.begin()
	for i, d := range pods {
		key := h.cfg.URL + " item " + strconv.Itoa(i)
		if d.name != "" {
			key = h.cfg.URL + " pod " + d.namespace + "/" + d.name
		}
		if has(keys, key) {
			key += " item " + strconv.Itoa(i) // two of one name: reported as a clash
		}
		keys = append(keys, key)
		if errs[i] != nil {
			k.failed(key, ReasonInvalid, errs[i])
			continue
		}
		o := origin{source: h.Name(), location: h.cfg.URL, suffix: true}
		if err := k.pod(ctx, key, d, o); err != nil {
			return err
		}
	}
	k.keep(keys)
	return nil
}

// get fetches the URL; false: it has not changed.
func (h *HTTP) get(ctx context.Context, etag string) (got answer, fresh bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.cfg.URL, nil)
	if err != nil {
		return answer{}, false, err
	}
	for name, values := range h.cfg.Header {
		req.Header[name] = values
		if http.CanonicalHeaderKey(name) == "Host" && len(values) > 0 {
			req.Host = values[0]
		}
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return answer{}, false, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode == http.StatusNotModified && etag != "" {
		return answer{}, false, nil
	}
	if resp.StatusCode != http.StatusOK {
		return answer{}, false, fmt.Errorf("%s: %s", h.cfg.URL, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxManifest+1))
	if err != nil {
		return answer{}, false, err
	}
	return answer{etag: resp.Header.Get("ETag"), body: body}, true, nil
}

func has(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
