package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

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

// Route is one more path on the socket.
type Route struct {
	Pattern string // as http.ServeMux takes it, such as "GET /debug/parts"
	Handler http.Handler
}

// Server serves what one agent shows. Use New.
type Server struct {
	cfg    Config
	agent  Agent
	routes []Route
	log    *slog.Logger
}

// New checks the configuration; nothing listens before Run.
func New(cfg Config, agent Agent, log *slog.Logger, routes ...Route) (*Server, error) {
	if cfg.HealthzAddress != "" {
		if _, _, err := net.SplitHostPort(cfg.HealthzAddress); err != nil {
			return nil, fmt.Errorf("server: HealthzAddress: %w", err)
		}
	}
	if cfg.Socket != "" && !filepath.IsAbs(cfg.Socket) {
		return nil, fmt.Errorf("server: Socket %q: must be an absolute path", cfg.Socket)
	}
	return &Server{cfg: cfg, agent: agent, routes: routes, log: log}, nil
}

// Run listens until ctx ends. A port that is taken ends it with an error that
// names the address.
func (s *Server) Run(ctx context.Context) error {
	group := tasks.New(ctx)
	if s.cfg.HealthzAddress != "" {
		if err := s.listen(group, "tcp", s.cfg.HealthzAddress, s.healthz()); err != nil {
			return err
		}
	}
	if s.cfg.Socket != "" {
		if err := s.listenSocket(group); err != nil {
			group.Stop()
			return errors.Join(err, group.Wait())
		}
	}
	<-group.Context().Done()
	return group.Wait()
}

// listenSocket takes over the path of an agent that died without removing it;
// the lock of the root directory keeps two live ones apart.
func (s *Server) listenSocket(group *tasks.Group) error {
	if err := os.Remove(s.cfg.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("server: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.cfg.Socket), 0o750); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if err := s.listen(group, "unix", s.cfg.Socket, s.local()); err != nil {
		return err
	}
	return os.Chmod(s.cfg.Socket, 0o600)
}

func (s *Server) listen(group *tasks.Group, network, address string, handler http.Handler) error {
	var lc net.ListenConfig
	l, err := lc.Listen(group.Context(), network, address)
	if err != nil {
		return fmt.Errorf("server: listen on %s: %w", address, err)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	group.Go("http-"+network, func(context.Context) error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("server: %s: %w", address, err)
		}
		return nil
	})
	group.Go("http-stop-"+network, func(ctx context.Context) error {
		<-ctx.Done()
		return srv.Close()
	})
	return nil
}

// healthz is all that TCP serves: it needs no credentials and says nothing.
func (s *Server) healthz() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", ok)
	return mux
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok")) // the client is gone: nobody to tell
}
