package testbed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Eventually calls check at once and then every interval until it returns nil.
// When ctx ends first, it returns check's last error, so give ctx a deadline;
// an error that comes only from ctx does not count.
func Eventually(ctx context.Context, interval time.Duration, check func(ctx context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still not so when %w: %w", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// PodClient makes each request on a connection of its own: the next pod may have
// the address of one that is gone, and then resets what was open to that one.
func PodClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
}

// Post asks a pod's server for something, once.
func Post(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	reply, err := PodClient().Do(req)
	if err != nil {
		return err
	}
	return reply.Body.Close()
}

// Fetch reads a page, trying again until ctx ends: a server needs a moment
// after the start of its container.
func Fetch(ctx context.Context, url string) (body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err = Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		body, err = get(ctx, PodClient(), url)
		return err
	})
	return body, err
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	reply, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, reply.Status, text)
	}
	return string(text), err
}
