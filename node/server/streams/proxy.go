package streams

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config are the settings of a Proxy.
type Config struct {
	// IdleTimeout ends a connection over which nothing went either way for so
	// long; 0: never. The stock default is four hours.
	IdleTimeout time.Duration
	// Translate takes WebSocket protocols that runtimes do not speak: v5 of
	// exec and attach, and tunnelled port-forward (gate
	// ExtendWebSocketsToKubelet). Off: they are passed on as they are.
	Translate bool
	// WebSocket is told about each stream that is translated: "exec", "attach"
	// or "portforward"; nil: nobody is.
	WebSocket func(subresource string)
}

// Proxy connects clients to streaming servers. Safe for concurrent use; use
// New.
type Proxy struct {
	cfg Config
	log *slog.Logger
}

// New makes a proxy. A log of nil logs nothing.
func New(cfg Config, log *slog.Logger) *Proxy {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Proxy{cfg: cfg, log: log}
}

// Options are the streams that a client wants.
type Options struct{ Stdin, Stdout, Stderr, TTY bool }

var errNoStream = errors.New("you must specify at least 1 of stdin, stdout, stderr")

// ParseOptions reads the query of an exec or attach. A terminal has no stderr
// of its own.
func ParseOptions(r *http.Request) (Options, error) {
	query := r.URL.Query()
	is := func(name string) bool { return query.Get(name) == "1" }
	o := Options{Stdin: is("input"), Stdout: is("output"), Stderr: is("error") && !is("tty"), TTY: is("tty")}
	if !o.Stdin && !o.Stdout && !o.Stderr {
		return o, errNoStream
	}
	return o, nil
}

// Target is where a command's streams are.
type Target struct {
	URL         *url.URL
	Options     Options
	Subresource string // "exec" or "attach", for Config.WebSocket
}

// Command serves an exec or attach.
func (p *Proxy) Command(w http.ResponseWriter, r *http.Request, t Target) {
	if !canTakeOver(w) {
		return
	}
	if p.cfg.Translate && slices.Contains(offers(r), commandV5) {
		p.tell(t.Subresource)
		p.translate(w, r, t)
		return
	}
	p.relay(w, r, t.URL)
}

// PortForward serves a port-forward.
func (p *Proxy) PortForward(w http.ResponseWriter, r *http.Request, target *url.URL) {
	if !canTakeOver(w) {
		return
	}
	if p.Tunnelled(r) {
		p.tell("portforward")
		p.tunnel(w, r, target)
		return
	}
	p.relay(w, r, target)
}

// canTakeOver answers requests that came over HTTP/2, whose connection is not
// theirs alone.
func canTakeOver(w http.ResponseWriter) bool {
	_, can := w.(http.Hijacker)
	if !can {
		http.Error(w, "streams need a connection of their own: use HTTP/1.1", http.StatusHTTPVersionNotSupported)
	}
	return can
}

// Tunnelled says that the request is one for a port-forward whose ports come
// later, inside of what the WebSocket carries.
func (p *Proxy) Tunnelled(r *http.Request) bool {
	return p.cfg.Translate && slices.ContainsFunc(offers(r), isTunnel)
}

// WebSocket says that the request is one for a WebSocket.
func WebSocket(r *http.Request) bool {
	return upgrades(r) && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

func (p *Proxy) tell(subresource string) {
	if p.cfg.WebSocket != nil {
		p.cfg.WebSocket(subresource)
	}
}

// upgrades says that the request asks for another protocol.
func upgrades(r *http.Request) bool {
	for _, line := range r.Header.Values("Connection") {
		for word := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(word), "upgrade") {
				return r.Header.Get("Upgrade") != ""
			}
		}
	}
	return false
}

// offers are the WebSocket protocols that the client speaks.
func offers(r *http.Request) []string {
	if !WebSocket(r) {
		return nil
	}
	var all []string
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for offer := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(offer))
		}
	}
	return all
}

// fail answers a request whose connection is still ours to answer on.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refused *refusal
	if errors.As(err, &refused) {
		refused.answer(w)
		return
	}
	p.log.Error("Error while proxying request", "path", r.URL.Path, "err", err)
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// refusal is the streaming server's answer that it will not upgrade.
type refusal struct {
	status      int
	contentType string
	body        []byte
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the runtime's streaming server answered %d: %s", r.status, r.body)
}

func (r *refusal) answer(w http.ResponseWriter) {
	if r.contentType != "" {
		w.Header().Set("Content-Type", r.contentType)
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // the client is gone: nobody to tell
}
