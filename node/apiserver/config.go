package apiserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// Protobuf and JSON are the content types of the API server's built-in groups.
const (
	Protobuf = "application/vnd.kubernetes.protobuf"
	JSON     = "application/json"
)

// Config says where the API server is and how it may be used.
type Config struct {
	// REST is the endpoint, its authority and the credentials; LoadKubeconfig
	// makes one. Its limits, content type and user agent are not used.
	// Required.
	REST *rest.Config
	// Credentials replace those of REST when they are set.
	Credentials Credentials
	// QPS and Burst limit the requests of all lanes but LaneEvents together,
	// in requests per second and requests at once. A QPS of 0 or less: no limit.
	QPS   float64
	Burst int
	// EventQPS and EventBurst limit LaneEvents.
	EventQPS   float64
	EventBurst int
	// ContentType is what is sent and, with JSON as the second choice, asked
	// for.
	ContentType string
	// UserAgent is told to the API server with each request.
	UserAgent string
	// Groups are further API groups, for Lane.Group.
	Groups []Group
	HTTP2  HTTP2
	// Observer's functions may be nil.
	Observer Observer
}

// Credentials are a client certificate that changes while the agent runs.
// credentials/nodecert's Manager is one. Both methods are called
// concurrently.
type Credentials interface {
	// Client returns the certificate for a new connection; it must not block.
	Client(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// Ready is closed when there is a certificate for the first time. Until
	// then requests wait.
	Ready() <-chan struct{}
}

// HTTP2 says how connections that died silently are found.
type HTTP2 struct {
	// Disabled makes all requests with HTTP/1.1, which has no health checks;
	// then HeartbeatFailed closes every connection.
	Disabled bool
	// ReadIdle is how long a connection may say nothing until it is pinged;
	// 0: it never is.
	ReadIdle time.Duration
	// PingTimeout is how long the answer to a ping may take.
	PingTimeout time.Duration
}

// Observer is told what happens, for metrics. Its functions must not block and
// are called concurrently.
type Observer struct {
	// Request is called when a request was answered (for a watch: began to be
	// answered) or failed.
	Request func(Request)
	// Throttled is called for each request of a limited lane with the time
	// that it waited for its turn.
	Throttled func(lane LaneID, waited time.Duration)
}

// Request is a request that was made.
type Request struct {
	Lane   LaneID
	Method string // "GET", ...
	Host   string
	Path   string
	Code   int   // HTTP status; 0 with Err
	Err    error // why there is no answer
	Took   time.Duration
}

// Default is the stock configuration without an endpoint.
func Default() Config {
	return Config{
		QPS: 50, Burst: 100, EventQPS: 50, EventBurst: 100,
		ContentType: Protobuf,
		UserAgent:   "nodekit",
		HTTP2:       HTTP2{ReadIdle: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// Validate says what can not work.
func (c Config) Validate() error {
	var errs []error
	if c.REST == nil || c.REST.Host == "" {
		errs = append(errs, errors.New("REST: no API server: give the server's URL, or load a kubeconfig"))
	} else if _, _, err := rest.DefaultServerUrlFor(c.REST); err != nil {
		errs = append(errs, fmt.Errorf("REST.Host: %q is not the URL of an API server: %w", c.REST.Host, err))
	}
	if c.QPS > 0 && c.Burst < 1 {
		errs = append(errs, fmt.Errorf("field Burst: %d must be at least 1 where QPS sets a limit", c.Burst))
	}
	if c.EventQPS > 0 && c.EventBurst < 1 {
		errs = append(errs, fmt.Errorf("field EventBurst: %d must be at least 1 where EventQPS sets a limit", c.EventBurst))
	}
	if c.HTTP2.ReadIdle < 0 || c.HTTP2.PingTimeout < 0 {
		errs = append(errs, errors.New("HTTP2: times must not be negative"))
	}
	return errors.Join(errs...)
}

// HTTP2FromEnv reads the stock variables DISABLE_HTTP2 (not empty: HTTP/1.1),
// HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS, with getenv
// as in os.Getenv. What is not set has its default. The error names the
// variable that is no number; the value beside it is usable all the same.
func HTTP2FromEnv(getenv func(string) string) (HTTP2, error) {
	h := Default().HTTP2
	h.Disabled = getenv("DISABLE_HTTP2") != ""
	return h, errors.Join(
		seconds(getenv, "HTTP2_READ_IDLE_TIMEOUT_SECONDS", &h.ReadIdle),
		seconds(getenv, "HTTP2_PING_TIMEOUT_SECONDS", &h.PingTimeout))
}

func seconds(getenv func(string) string, name string, into *time.Duration) error {
	text := getenv(name)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("environment variable %s: %q is not a number of seconds; using %v", name, text, *into)
	}
	*into = time.Duration(n) * time.Second
	return nil
}
