package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
)

// APIConfig says where and to whom the API of the node is served.
type APIConfig struct {
	// Address is host:port for HTTPS, stock port 10250. Empty: not served.
	Address string
	// ReadOnlyAddress is host:port of the port without TLS and credentials that
	// serves the read-only routes, stock port 10255. Empty: not served.
	ReadOnlyAddress string
	// NodeName is the node that authorizers are asked about. Required.
	NodeName string
	// Anonymous lets requests without credentials through to the authorizers,
	// as user system:anonymous.
	Anonymous bool
	TLS       TLSConfig
}

// APIParts is what the API is made of.
type APIParts struct {
	// Routes must have one for each path; see [Merge].
	Routes []node.Ordered[Route]
	// Authenticators are asked in their order until one knows the user.
	Authenticators []node.Ordered[Authenticator]
	// Authorizers are asked in their order until one has an opinion.
	Authorizers []node.Ordered[Authorizer]
	// Observer is told about every request.
	Observer Observer
	Log      *slog.Logger // nil: nothing is logged
}

// API serves the node's HTTPS API and its read-only port. Use NewAPI.
type API struct {
	cfg      APIConfig
	log      *slog.Logger
	tls      *tls.Config
	served   *table
	secure   http.Handler
	readOnly http.Handler
}

// NewAPI checks the configuration and puts the groups in order; nothing
// listens before Run.
func NewAPI(cfg APIConfig, parts APIParts) (*API, error) {
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	if err := cfg.validate(parts); err != nil {
		return nil, err
	}
	routes, err := node.InOrder("route", parts.Routes)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	a := &API{cfg: cfg, log: parts.Log}
	if a.served, err = newTable(Plain(routes)); err != nil {
		return nil, err
	}
	if a.secure, err = newGate(cfg, parts, a.served); err != nil {
		return nil, err
	}
	if a.readOnly, err = newReadOnly(Plain(routes), parts.Observer); err != nil {
		return nil, err
	}
	a.tls, err = cfg.TLS.build()
	return a, err
}

func (c APIConfig) validate(parts APIParts) error {
	for _, address := range []struct{ field, value string }{{"Address", c.Address}, {"ReadOnlyAddress", c.ReadOnlyAddress}} {
		if address.value == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(address.value); err != nil {
			return fmt.Errorf("server: %s %q: %w", address.field, address.value, err)
		}
	}
	if c.Address == "" {
		return nil
	}
	switch {
	case c.TLS.Certificate == nil:
		return errors.New("server: TLS: no serving certificate: set TLS.Certificate")
	case c.NodeName == "":
		return errors.New("server: NodeName: must be set, since authorizers are asked about this node")
	case len(parts.Authenticators) == 0 && !c.Anonymous:
		return errors.New("server: no authentication method configured: give an authenticator, or allow anonymous requests")
	case len(parts.Authorizers) == 0:
		return errors.New("server: no authorization mode specified: give an authorizer")
	}
	return nil
}

func newGate(cfg APIConfig, parts APIParts, table *table) (http.Handler, error) {
	authenticators, err := node.InOrder("authenticator", parts.Authenticators)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	authorizers, err := node.InOrder("authorizer", parts.Authorizers)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	g := &gate{
		node: cfg.NodeName, anonymous: cfg.Anonymous, table: table, log: parts.Log,
		authenticators: authenticators, authorizers: authorizers,
	}
	return parts.Observer.watch(g, ReadWrite, table), nil
}

func newReadOnly(routes []Route, observer Observer) (http.Handler, error) {
	var open []Route
	for _, r := range routes {
		if r.ReadOnly {
			open = append(open, r)
		}
	}
	table, err := newTable(open)
	if err != nil {
		return nil, err
	}
	return observer.watch(table, ReadOnly, table), nil
}

// Routes are what is served over HTTPS, in the order of the group: from the
// table that finds the route of a request, so that none can be missing. It is
// quick and may be called concurrently.
func (a *API) Routes() []ServedRoute {
	var all []ServedRoute
	for _, p := range a.served.paths {
		for _, r := range p.routes {
			all = append(all, ServedRoute{
				Method: r.method(), Path: p.pattern, Subresources: p.subresources(r),
				ReadOnly: r.ReadOnly, Streaming: r.Streaming,
			})
		}
	}
	return all
}

// Run listens until ctx ends and returns after the calls under way are over,
// at most four seconds later. An address that is taken ends it with an error
// that names the address.
func (a *API) Run(ctx context.Context) error {
	group := tasks.New(ctx)
	err := a.listen(group)
	if err == nil {
		<-group.Context().Done()
	}
	group.Stop()
	return errors.Join(err, group.Wait())
}

func (a *API) listen(group *tasks.Group) error {
	if a.cfg.Address != "" {
		l, err := listenTCP(group.Context(), a.cfg.Address)
		if err != nil {
			return err
		}
		a.log.Info("Starting to listen", "address", l.Addr().String())
		// Whoever speaks no TLS or hangs up is not worth more than Info.
		serve(group, a.log, endpoint{name: "api", listener: l, handler: a.secure, level: slog.LevelInfo, tls: a.tls})
	}
	if a.cfg.ReadOnlyAddress != "" {
		l, err := listenTCP(group.Context(), a.cfg.ReadOnlyAddress)
		if err != nil {
			return err
		}
		a.log.Info("Starting to listen read-only", "address", l.Addr().String())
		serve(group, a.log, endpoint{name: "read-only", listener: l, handler: a.readOnly, level: slog.LevelInfo})
	}
	return nil
}
