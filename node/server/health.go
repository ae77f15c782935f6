package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
)

// Check is one of the checks that /healthz adds up.
type Check struct {
	// Check says what is wrong; nil: nothing. It may block until the request's
	// context ends, and is called concurrently.
	Check func(r *http.Request) error
}

// Healthz are /healthz, which is "ok" where all checks are, and a path for
// each check. "?verbose" lists the checks and "?exclude=NAME" leaves one out.
// A check "ping" that only answers comes first. All are on the read-only port.
func Healthz(checks []node.Ordered[Check], log *slog.Logger) ([]node.Ordered[Route], error) {
	sorted, err := node.InOrder("health check", checks)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	ping := node.Ordered[Check]{Name: "ping", Value: Check{Check: func(*http.Request) error { return nil }}}
	h := &healthSum{checks: append([]node.Ordered[Check]{ping}, sorted...), log: log}
	routes := []node.Ordered[Route]{{Name: "healthz", Value: Route{Pattern: "/healthz", Handler: h, ReadOnly: true}}}
	for _, c := range h.checks {
		routes = append(routes, node.Ordered[Route]{Name: "healthz-" + c.Name, Value: Route{
			Pattern: "/healthz/" + c.Name, Handler: one(c.Value), ReadOnly: true,
		}})
	}
	return routes, nil
}

func one(c Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.Check(r); err != nil {
			http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
			return
		}
		ok(w, r)
	})
}

type healthSum struct {
	checks []node.Ordered[Check]
	log    *slog.Logger
}

func (h *healthSum) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var lines strings.Builder
	var failed []error
	exclude := r.URL.Query()["exclude"]
	for _, c := range h.checks {
		switch err := h.run(r, c, exclude); {
		case errors.Is(err, errExcluded):
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
		case err != nil:
			// The reason is for who may ask the check itself, and for the log.
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.Name)
			failed = append(failed, fmt.Errorf("%s: %w", c.Name, err))
		default:
			fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
		}
	}
	for _, name := range exclude {
		if !slices.ContainsFunc(h.checks, func(c node.Ordered[Check]) bool { return c.Name == name }) {
			fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", name)
		}
	}
	switch _, verbose := r.URL.Query()["verbose"]; {
	case len(failed) > 0:
		h.log.Info("healthz check failed", "err", errors.Join(failed...))
		http.Error(w, lines.String()+"healthz check failed", http.StatusInternalServerError)
	case verbose:
		WriteText(w, lines.String()+"healthz check passed\n")
	default:
		WriteText(w, "ok")
	}
}

var errExcluded = errors.New("excluded")

func (h *healthSum) run(r *http.Request, c node.Ordered[Check], exclude []string) error {
	if slices.Contains(exclude, c.Name) {
		return errExcluded
	}
	return c.Value.Check(r)
}

// respondWait is how long a check waits for an answer before it looks at for
// how long there has been none.
const respondWait = time.Second

// Responding is a check that calls what may hang, such as a lock that is never
// given back. It fails once a call has not come back for longer than limit;
// while one has not, no other is made. The stock check "syncloop" is of this
// kind, with five minutes.
func Responding(what string, limit time.Duration, call func()) Check {
	r := &responder{what: what, limit: limit, call: call}
	return Check{Check: r.check}
}

type responder struct {
	what  string
	limit time.Duration
	call  func()

	mu    sync.Mutex
	begun time.Time     // of the call that has not come back
	back  chan struct{} // closed when it does; nil: there is none
}

func (r *responder) check(req *http.Request) error {
	back, begun := r.start(req.Context())
	timer := time.NewTimer(min(respondWait, r.limit))
	defer timer.Stop()
	select {
	case <-back:
		return nil
	case <-timer.C:
	case <-req.Context().Done():
	}
	if time.Since(begun) >= r.limit {
		return fmt.Errorf("%s took longer than expected", r.what)
	}
	return nil
}

// start gives the call under way, and makes one where there is none. It may
// hang for ever, so that nobody waits for its end.
func (r *responder) start(ctx context.Context) (back <-chan struct{}, begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.back != nil {
		return r.back, r.begun
	}
	r.back, r.begun = make(chan struct{}), time.Now()
	done := r.back
	tasks.New(context.WithoutCancel(ctx)).Go("health-check", func(context.Context) error {
		r.call()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.back = nil
		close(done)
		return nil
	})
	return done, r.begun
}
