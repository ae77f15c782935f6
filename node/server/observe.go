package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Port is which of the API's ports served a request, in the stock metrics'
// words.
type Port string

// The ports.
const (
	ReadWrite Port = "readwrite"
	ReadOnly  Port = "readonly"
)

// Request is one request in the stock metrics' words.
type Request struct {
	Method      string // as sent; "other" for what is no method
	Path        string // the first part of the path, "metrics/NAME" or "other"
	Port        Port
	LongRunning bool
}

// Labels are the values of method, path, server_type and long_running.
func (r Request) Labels() []string {
	return []string{r.Method, r.Path, string(r.Port), strconv.FormatBool(r.LongRunning)}
}

// Observer is told what the API does. Nil funcs are fine; they must not block.
type Observer struct {
	// Begun is called for each request, allowed or not.
	Begun func(Request)
	// Ended is called when it was answered.
	Ended func(Request, time.Duration)
}

// watch tells the observer about the requests to a handler. Paths that no
// route has are counted together, so that nobody can make up series.
func (o Observer) watch(next http.Handler, port Port, t *table) http.Handler {
	if o.Begun == nil && o.Ended == nil {
		return next
	}
	known := map[string]bool{}
	for _, p := range t.paths {
		known[bucket(p.pattern)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r, port, known)
		if o.Begun != nil {
			o.Begun(req)
		}
		begun := time.Now()
		defer func() {
			if o.Ended != nil {
				o.Ended(req, time.Since(begun))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func requestOf(r *http.Request, port Port, known map[string]bool) Request {
	req := Request{Method: r.Method, Path: bucket(r.URL.Path), Port: port}
	if !slices.Contains([]string{"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"}, req.Method) {
		req.Method = "other"
	}
	if !known[req.Path] {
		req.Path = "other"
	}
	req.LongRunning = slices.Contains([]string{"exec", "attach", "portforward", "debug"}, req.Path)
	return req
}

// bucket is the first part of a path, or the first two of a metrics path.
func bucket(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	second, _, _ := strings.Cut(rest, "/")
	if first == "metrics" && second != "" {
		return first + "/" + second
	}
	return first
}
