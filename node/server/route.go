package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"nodekit.dev/node"
)

// Route is one path of the agent's HTTP.
type Route struct {
	// Pattern is a path as http.ServeMux takes it, with a method in front where
	// only that one is served: "GET /debug/parts", "/exec/{namespace}/{pod}/".
	// Other methods are then told which one is (405), HEAD too.
	Pattern string
	Handler http.Handler
	// Subresources of the node open the route over HTTPS: whoever may do what
	// the method says ("get", "create", ...) with any one of them. They are
	// asked for in this order. Nil: what the stock kubelet asks for such a path,
	// see [SubresourcesOf].
	Subresources []string
	// ReadOnly routes are also served on the read-only port, to everybody.
	ReadOnly bool
	// Streaming routes answer for as long as the client wants, so that the
	// server's limits on the time of a call do not hold for them.
	Streaming bool
}

// ServedRoute is a route as [API.Routes] shows it.
type ServedRoute struct {
	Method       string   `json:"method,omitempty"` // empty: every method
	Path         string   `json:"path"`             // as http.ServeMux takes it
	Subresources []string `json:"subresources"`     // each opens it
	ReadOnly     bool     `json:"readOnly"`         // on the read-only port too, where there is one
	Streaming    bool     `json:"streaming"`
}

// Plain takes the routes out of a group, for [New].
func Plain(routes []node.Ordered[Route]) []Route {
	var plain []Route
	for _, r := range routes {
		plain = append(plain, r.Value)
	}
	return plain
}

// Merge adds a vendor's routes to the stock ones. One that has the name of a
// stock one takes its place.
func Merge(stock, vendor []node.Ordered[Route]) []node.Ordered[Route] {
	merged := slices.DeleteFunc(slices.Clone(stock), func(s node.Ordered[Route]) bool {
		return slices.ContainsFunc(vendor, func(v node.Ordered[Route]) bool { return v.Name == s.Name })
	})
	return append(merged, vendor...)
}

// method is the one method that the route serves; empty: all.
func (r Route) method() string {
	method, _, found := strings.Cut(r.Pattern, " ")
	if !found {
		return ""
	}
	return method
}

// path is the pattern without its method.
func (r Route) path() string {
	if _, path, found := strings.Cut(r.Pattern, " "); found {
		return strings.TrimLeft(path, " \t")
	}
	return r.Pattern
}

// table finds the route of a request. A path is registered once, with all
// methods, so that it is known whose path it is even where the method is wrong.
type table struct {
	mux   *http.ServeMux
	paths []*place // in the order of their first routes
}

// place is one path.
type place struct {
	pattern string
	routes  []Route
}

func newTable(routes []Route) (*table, error) {
	t := &table{mux: http.NewServeMux()}
	byPath := map[string]*place{}
	for _, r := range routes {
		if r.Handler == nil {
			return nil, fmt.Errorf("server: route %q: has no handler", r.Pattern)
		}
		p := byPath[r.path()]
		if p == nil {
			p = &place{pattern: r.path()}
			byPath[r.path()] = p
			t.paths = append(t.paths, p)
		}
		if slices.ContainsFunc(p.routes, func(other Route) bool { return other.method() == r.method() }) {
			return nil, fmt.Errorf("server: route %q: another route has the same pattern", r.Pattern)
		}
		p.routes = append(p.routes, r)
	}
	for _, p := range t.paths {
		if err := register(t.mux, p); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// register turns the panic of http.ServeMux about a pattern that is malformed
// or in conflict with another into an error.
func register(mux *http.ServeMux, p *place) (err error) {
	pattern := p.routes[0].Pattern
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("server: route %q: %v", pattern, v)
		}
	}()
	if !strings.HasPrefix(p.pattern, "/") {
		return fmt.Errorf("server: route %q: %w", pattern, errors.New("a path begins with /"))
	}
	mux.Handle(p.pattern, p)
	return nil
}

// find is the place that would serve the request; nil: none would. The request
// may then still be one that the mux redirects to a cleaner path.
func (t *table) find(r *http.Request) *place {
	handler, _ := t.mux.Handler(r)
	p, _ := handler.(*place)
	return p
}

func (t *table) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.mux.ServeHTTP(w, r) }

// route is the one for that method.
func (p *place) route(method string) (Route, bool) {
	for _, want := range []string{method, ""} {
		if i := slices.IndexFunc(p.routes, func(r Route) bool { return r.method() == want }); i >= 0 {
			return p.routes[i], true
		}
	}
	return Route{}, false
}

// subresources are those that open one of the routes of the place.
func (p *place) subresources(r Route) []string {
	if r.Subresources == nil {
		return SubresourcesOf(p.pattern)
	}
	return r.Subresources
}

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, found := p.route(r.Method)
	if !found {
		var allowed []string
		for _, other := range p.routes {
			allowed = append(allowed, other.method())
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	if route.Streaming {
		unlimited(w)
	}
	route.Handler.ServeHTTP(w, r)
}
