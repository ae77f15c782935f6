package apiserver

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// connections is one set of connections with what logs in on them. It is built
// by the first request, because that reads files, and by each further request
// for as long as it can not be built.
type connections struct {
	cfg    Config
	dialer *dialer

	mu    sync.Mutex
	http  *http.Transport
	ready http.RoundTripper
}

func newConnections(cfg Config) *connections {
	return &connections{cfg: cfg, dialer: newDialer(cfg.REST.Dial)}
}

// RoundTrip makes a request once there are credentials for it.
func (c *connections) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.cfg.Credentials != nil {
		select {
		case <-c.cfg.Credentials.Ready():
		case <-req.Context().Done():
			return nil, fmt.Errorf("no client certificate for the API server yet: %w", req.Context().Err())
		}
	}
	ready, err := c.built()
	if err != nil {
		return nil, err
	}
	return ready.RoundTrip(req)
}

func (c *connections) built() (http.RoundTripper, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready != nil {
		return c.ready, nil
	}
	conf, err := c.transportConfig()
	if err != nil {
		return nil, fmt.Errorf("credentials for the API server: check what the kubeconfig names: %w", err)
	}
	tlsConfig, err := transport.TLSConfigFor(conf)
	if err != nil {
		return nil, fmt.Errorf("TLS to the API server: check the files that the kubeconfig names: %w", err)
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.cfg.Credentials != nil {
		tlsConfig.GetClientCertificate = c.cfg.Credentials.Client
	}
	httpTransport := newHTTPTransport(c.cfg.HTTP2, conf, tlsConfig)
	// The wrappers log in with tokens and passwords and name the user agent.
	ready, err := transport.HTTPWrappersForConfig(conf, httpTransport)
	if err != nil {
		return nil, fmt.Errorf("credentials for the API server: check what the kubeconfig names: %w", err)
	}
	c.http, c.ready = httpTransport, ready
	return ready, nil
}

// transportConfig is what REST asks for, with our dialer below an exec
// plugin's, and without REST's own credentials where others replace them.
func (c *connections) transportConfig() (*transport.Config, error) {
	config := rest.CopyConfig(c.cfg.REST)
	if c.cfg.Credentials != nil {
		config = rest.AnonymousClientConfig(config)
	}
	config.UserAgent = c.cfg.UserAgent
	config.Dial = c.dialer.DialContext
	return config.TransportConfig()
}

func newHTTPTransport(h HTTP2, conf *transport.Config, tlsConfig *tls.Config) *http.Transport {
	proxy := conf.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!h.Disabled)
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         conf.DialHolder.Dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  conf.DisableCompression,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		Protocols:           &protocols,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: h.ReadIdle, PingTimeout: h.PingTimeout},
	}
}

// closeIdle closes connections that no request is on.
func (c *connections) closeIdle() {
	c.mu.Lock()
	httpTransport := c.http
	c.mu.Unlock()
	if httpTransport != nil {
		httpTransport.CloseIdleConnections()
	}
}

// closeAll closes every connection; requests on them fail.
func (c *connections) closeAll() int {
	c.closeIdle()
	return c.dialer.closeAll()
}
