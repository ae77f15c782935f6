package cri

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"
)

// DefaultRequestTimeout bounds one call where the call has no bound of its own.
const DefaultRequestTimeout = 2 * time.Minute

// Config says where the runtime is and how long to wait for it.
type Config struct {
	// Endpoint is the runtime's socket: unix:///path, or a bare absolute path.
	Endpoint string
	// ImageEndpoint is the socket of the image service. Empty: Endpoint.
	ImageEndpoint string
	// RequestTimeout bounds each call; making a sandbox may take twice that,
	// stopping a container takes its grace more, a pull has no bound but its
	// context. 0: DefaultRequestTimeout.
	RequestTimeout time.Duration
	// APIVersion pins the version ("v1" or "v1alpha2") instead of probing for
	// it. Empty: v1, or v1alpha2 where the runtime knows no v1.
	APIVersion string
	// StreamLists reads lists of sandboxes, containers and images as streams
	// where the runtime has them (KEP-5825, gate CRIListStreaming), so that they
	// may be longer than 16 MiB. A runtime without them is asked in the usual way.
	StreamLists bool
	// Log takes what no caller can act on. Nil: nothing is logged.
	Log *slog.Logger
	// Observer's functions may be nil.
	Observer Observer
}

// Observer is told about calls, for metrics. Its functions must not block and
// are called concurrently.
type Observer struct {
	// Called is called after each call, or when a stream was opened.
	Called func(Call)
}

// Call is one call of the runtime that ended.
type Call struct {
	Method  string // as in the API: "RunPodSandbox"
	Handler string // the runtime handler of RunPodSandbox
	Took    time.Duration
	Err     error
}

// Validate says what is wrong with the configuration, by field.
func (c Config) Validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %w", field, fmt.Errorf(format, args...)))
	}
	if c.Endpoint == "" {
		wrong("Endpoint", "must not be empty")
	} else if _, err := socketPath(c.Endpoint); err != nil {
		wrong("Endpoint", "%w", err)
	}
	if c.ImageEndpoint != "" {
		if _, err := socketPath(c.ImageEndpoint); err != nil {
			wrong("ImageEndpoint", "%w", err)
		}
	}
	if c.RequestTimeout < 0 {
		wrong("RequestTimeout", "%v: must not be negative", c.RequestTimeout)
	}
	if c.APIVersion != "" && c.APIVersion != apiV1 && c.APIVersion != apiV1alpha2 {
		wrong("APIVersion", "%q: must be empty, %q or %q", c.APIVersion, apiV1, apiV1alpha2)
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left empty.
func (c Config) withDefaults() Config {
	if c.RequestTimeout == 0 {
		c.RequestTimeout = DefaultRequestTimeout
	}
	if c.ImageEndpoint == "" {
		c.ImageEndpoint = c.Endpoint
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// socketPath turns an endpoint into the path of a unix socket.
func socketPath(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	switch u.Scheme {
	case "unix", "":
	case "tcp":
		return "", fmt.Errorf("endpoint %q: only support unix socket endpoint", endpoint)
	default:
		return "", fmt.Errorf("endpoint %q: protocol %q not supported", endpoint, u.Scheme)
	}
	if u.Host != "" || !filepath.IsAbs(u.Path) {
		return "", fmt.Errorf("endpoint %q: must be unix:// and an absolute path", endpoint)
	}
	return u.Path, nil
}
