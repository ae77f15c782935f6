package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"nodekit.dev/node"
)

// gate lets a request to its route when it is known who sent it and that they
// may. It stands before everything, also before what no route serves: without
// credentials nobody learns which paths there are.
type gate struct {
	node           string
	anonymous      bool
	authenticators []node.Ordered[Authenticator]
	authorizers    []node.Ordered[Authorizer]
	table          *table
	log            *slog.Logger
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, err := g.authenticate(r)
	if err != nil {
		if !errors.Is(err, errNoCredentials) {
			g.log.Info("Unable to authenticate the request due to an error", "remote", r.RemoteAddr, "path", r.URL.Path, "err", err)
		}
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	if g.authorize(w, r, user) {
		g.table.ServeHTTP(w, r)
	}
}

var errNoCredentials = errors.New("no credentials")

// authenticate asks one after the other. A request whose credentials do not
// hold is not taken for an anonymous one.
func (g *gate) authenticate(r *http.Request) (User, error) {
	var errs []error
	for _, a := range g.authenticators {
		user, known, err := a.Value.Authenticate(r)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.Name, err))
			continue
		}
		if known {
			return asAuthenticated(user), nil
		}
	}
	switch {
	case len(errs) > 0:
		return User{}, errors.Join(errs...)
	case g.anonymous:
		return anonymous(), nil
	}
	return User{}, errNoCredentials
}

// authorize answers the request itself when it must not go on.
func (g *gate) authorize(w http.ResponseWriter, r *http.Request, user User) bool {
	subs := g.subresources(r)
	a := Attributes{User: user, Verb: verbOf(r.Method), Node: g.node, Path: r.URL.Path}
	for _, sub := range subs {
		a.Subresource = sub
		decision, err := g.decide(r.Context(), a)
		if err != nil {
			g.log.Error("Authorization error", "user", user.Name, "verb", a.Verb, "subresource", sub, "err", err)
			http.Error(w, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)", user.Name, a.Verb, sub),
				http.StatusInternalServerError)
			return false
		}
		if decision == Allow {
			return true
		}
	}
	g.log.Info("Forbidden", "user", user.Name, "verb", a.Verb, "subresources", subs, "path", r.URL.Path)
	http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", user.Name, a.Verb, subs),
		http.StatusForbidden)
	return false
}

// subresources are those of the route that serves the path; for a method that
// none serves those of its first, so that only who may ask at all is told so.
func (g *gate) subresources(r *http.Request) []string {
	p := g.table.find(r)
	if p == nil {
		return SubresourcesOf(r.URL.Path)
	}
	route, found := p.route(r.Method)
	if !found {
		route = p.routes[0]
	}
	return p.subresources(route)
}

// decide asks one after the other until someone has an opinion.
func (g *gate) decide(ctx context.Context, a Attributes) (Decision, error) {
	for _, authorizer := range g.authorizers {
		decision, err := authorizer.Value.Authorize(ctx, a)
		if err != nil {
			return Deny, fmt.Errorf("%s: %w", authorizer.Name, err)
		}
		if decision != NoOpinion {
			return decision, nil
		}
	}
	return Deny, nil
}
