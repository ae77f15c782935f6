package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"nodekit.dev/internal/tasks"
)

// The stock kubelet's limits on connections and calls. Streaming routes have
// none.
const (
	idleTimeout    = 90 * time.Second
	callTimeout    = 4 * time.Hour
	headerTimeout  = 10 * time.Second
	maxHeaderBytes = 1 << 20
	// stopPatience is how long calls under way may take to end.
	stopPatience = 2 * time.Second
)

// endpoint is one address and what is served there.
type endpoint struct {
	name     string // of its tasks
	listener net.Listener
	handler  http.Handler
	level    slog.Level  // of what net/http has to say
	tls      *tls.Config // nil: none
}

// serve answers until the group ends, and then until the calls under way are
// over, which their contexts tell.
func serve(group *tasks.Group, log *slog.Logger, e endpoint) {
	var calls callCount
	srv := &http.Server{
		Handler: calls.counted(e.handler), TLSConfig: e.tls,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: callTimeout, WriteTimeout: callTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return group.Context() },
		ErrorLog:    slog.NewLogLogger(log.Handler(), e.level),
	}
	group.Go("http-"+e.name, func(context.Context) error {
		if err := listenAndServe(srv, e); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("server: %v: %w", e.listener.Addr(), err)
		}
		return nil
	})
	group.Go("http-stop-"+e.name, func(ctx context.Context) error {
		<-ctx.Done()
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		err := srv.Shutdown(undo)
		if err != nil {
			err = srv.Close() // whoever still talks was told by the call's context
		}
		calls.wait(undo)
		return err
	})
}

func listenAndServe(srv *http.Server, e endpoint) error {
	if e.tls == nil {
		return srv.Serve(e.listener)
	}
	return srv.ServeTLS(e.listener, "", "")
}

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return l, nil
}

// unlimited lifts the limits on the time of a call for the one under way.
func unlimited(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	// A writer without deadlines has no limits to lift.
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}
