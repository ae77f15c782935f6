package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/podactor"
)

// Agent is what the server shows. All methods are quick and may be called
// concurrently.
type Agent interface {
	Pods() []node.PodView
	Trace(uid string) (trace podactor.Trace, found bool, err error)
}

// Config says where to listen.
type Config struct {
	// HealthzAddress is host:port for /healthz. Empty: not served.
	HealthzAddress string
	// Socket is the path of the unix socket, mode 0600. Empty: not served.
	Socket string
}

// Server serves what one agent shows. Use New.
type Server struct {
	cfg   Config
	agent Agent
	log   *slog.Logger
	local http.Handler // what the socket serves
}

// New checks the configuration and the routes; nothing listens before Run. A
// log of nil logs nothing.
func New(cfg Config, agent Agent, log *slog.Logger, routes ...Route) (*Server, error) {
	if agent == nil {
		return nil, errors.New("server: no agent")
	}
	if cfg.HealthzAddress != "" {
		if _, _, err := net.SplitHostPort(cfg.HealthzAddress); err != nil {
			return nil, fmt.Errorf("server: HealthzAddress %q: %w", cfg.HealthzAddress, err)
		}
	}
	if cfg.Socket != "" && !filepath.IsAbs(cfg.Socket) {
		return nil, fmt.Errorf("server: Socket %q: must be an absolute path", cfg.Socket)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, agent: agent, log: log}
	local, err := newTable(withOwn(routes, s.own()))
	s.local = local
	return s, err
}

// Run listens until ctx ends and returns after the calls under way are over,
// at most two seconds later. An address that is taken ends it with an error
// that names the address.
func (s *Server) Run(ctx context.Context) error {
	group := tasks.New(ctx)
	err := s.listen(group)
	if err == nil {
		<-group.Context().Done()
	}
	group.Stop()
	return errors.Join(err, group.Wait())
}

func (s *Server) listen(group *tasks.Group) error {
	if s.cfg.HealthzAddress != "" {
		l, err := listenTCP(group.Context(), s.cfg.HealthzAddress)
		if err != nil {
			return err
		}
		serve(group, s.log, endpoint{name: "tcp", listener: l, handler: healthz(), level: slog.LevelWarn})
	}
	if s.cfg.Socket != "" {
		l, err := listenSocket(group.Context(), s.cfg.Socket)
		if err != nil {
			return fmt.Errorf("server: %w", err)
		}
		serve(group, s.log, endpoint{name: "unix", listener: l, handler: s.local, level: slog.LevelWarn})
	}
	return nil
}

// healthz is all that TCP serves: it needs no credentials and says nothing.
func healthz() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /healthz/ping", ok)
	return mux
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok")) // the client is gone: nobody to tell
}
