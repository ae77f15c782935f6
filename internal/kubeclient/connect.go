package kubeclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Options say how connections are made.
type Options struct {
	// Certificate is asked for a client certificate by each new connection,
	// and replaces all credentials of the config. Nil: those are used.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// Dial makes connections; nil: the config's, or TCP within 30 s.
	Dial      func(ctx context.Context, network, address string) (net.Conn, error)
	UserAgent string
	// HTTP1 is HTTP/1.1 only; ReadIdle and PingTimeout then do nothing.
	HTTP1 bool
	// ReadIdle is how long an HTTP/2 connection may say nothing until it is
	// pinged (0: never), PingTimeout how long the answer may take.
	ReadIdle, PingTimeout time.Duration
}

// Conn makes requests to the endpoint of one config, logged in.
type Conn struct {
	http.RoundTripper
	http *http.Transport
}

// Connect reads the files that config names. It makes no connection yet.
func Connect(config *rest.Config, opts Options) (*Conn, error) {
	config = rest.CopyConfig(config)
	if opts.Certificate != nil {
		config = rest.AnonymousClientConfig(config)
	}
	config.UserAgent = opts.UserAgent
	if opts.Dial != nil {
		config.Dial = opts.Dial
	}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	conf, err := config.TransportConfig()
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
	if opts.Certificate != nil {
		tlsConfig.GetClientCertificate = opts.Certificate
	}
	httpTransport := newTransport(opts, conf, tlsConfig)
	// The wrappers log in with tokens and passwords and name the user agent.
	wrapped, err := transport.HTTPWrappersForConfig(conf, httpTransport)
	if err != nil {
		return nil, fmt.Errorf("credentials for the API server: check what the kubeconfig names: %w", err)
	}
	return &Conn{RoundTripper: wrapped, http: httpTransport}, nil
}

// CloseIdle closes the connections that no request is on.
func (c *Conn) CloseIdle() { c.http.CloseIdleConnections() }

func newTransport(opts Options, conf *transport.Config, tlsConfig *tls.Config) *http.Transport {
	proxy := conf.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!opts.HTTP1)
	return &http.Transport{
		Proxy: proxy,
		// An exec plugin has put its own dialer around ours.
		DialContext:         conf.DialHolder.Dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  conf.DisableCompression,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		Protocols:           &protocols,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: opts.ReadIdle, PingTimeout: opts.PingTimeout},
	}
}
