package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"nodekit.dev/probe"
)

// check is the program's own check: an endpoint is a URL.
func check(ctx context.Context, t probe.Target) probe.Outcome {
	u, err := url.Parse(t.Container)
	switch {
	case err != nil:
	case u.Scheme == "tcp":
		return outcome("open", dial(ctx, u.Host))
	case u.Scheme == "http" || u.Scheme == "https":
		text, err := get(ctx, t.Container)
		return outcome(text, err)
	default:
		err = errors.New("an endpoint begins with http://, https:// or tcp://")
	}
	return probe.Outcome{Err: err, Output: err.Error()}
}

func outcome(text string, err error) probe.Outcome {
	if err != nil {
		return probe.Outcome{Result: probe.Failure, Output: err.Error()}
	}
	return probe.Outcome{Result: probe.Success, Output: text}
}

func dial(ctx context.Context, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("answered %s", resp.Status)
	}
	return resp.Status, nil
}
