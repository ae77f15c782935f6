package pluginwatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"nodekit.dev/internal/backoff"
	"nodekit.dev/internal/tasks"
)

// socket is one plugin's, from when it was found until it is gone.
type socket struct {
	watcher *Watcher
	path    string
	id      identity // the watcher's own
	cancel  context.CancelFunc
	before  <-chan struct{} // closed when the socket that had the path before has ended; nil: none had
	ended   chan struct{}
}

// run registers the plugin, waits for its end, and takes it away.
func (s *socket) run(ctx context.Context) {
	defer close(s.ended)
	if s.before != nil {
		<-s.before
	}
	r, handler := s.register(ctx)
	if handler == nil {
		return
	}
	<-ctx.Done()
	s.unregister(r, handler)
}

// unregister takes the plugin away, unless it is the agent that ends.
func (s *socket) unregister(r Registration, handler Handler) {
	if s.watcher.group.Context().Err() == nil {
		s.watcher.log.Info("a plugin is gone", "type", r.Type, "name", r.Name, "socket", r.Socket)
		handler.Unregister(r)
	}
}

// register tries until it succeeds or ctx ends; then handler is nil. Of failures
// in a row that say the same, the log has the first.
func (s *socket) register(ctx context.Context) (r Registration, handler Handler) {
	var waits backoff.State
	for ctx.Err() == nil {
		r, handler, err := s.try(ctx)
		if err == nil {
			s.watcher.log.Info("a plugin registered", "type", r.Type, "name", r.Name, "endpoint", r.Endpoint, "versions", r.Versions)
			return r, handler
		}
		if ctx.Err() != nil {
			break
		}
		note := waits.Note
		waits = waits.Fail(s.watcher.cfg.Retry, time.Now(), err.Error())
		if note != waits.Note {
			s.watcher.log.Warn("a plugin could not register", "socket", s.path, "name", r.Name, "retryIn", waits.Delay, "err", err)
		}
		if tasks.Pause(ctx, waits.Delay) != nil {
			break
		}
	}
	return Registration{}, nil
}

// try is one attempt.
func (s *socket) try(ctx context.Context) (Registration, Handler, error) {
	conn, err := grpc.NewClient("passthrough:///"+s.path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return Registration{}, nil, err
	}
	defer func() { _ = conn.Close() }() // nothing of it is needed any more
	client := registerapi.NewRegistrationClient(conn)
	r, err := s.ask(ctx, client)
	if err != nil {
		return r, nil, err
	}
	handler := s.watcher.handlers[r.Type]
	if handler == nil {
		err = fmt.Errorf("no handler registered for plugin type: %s at socket %s", r.Type, s.path)
	} else {
		err = tasks.Contain("plugin handler", func() error { return handler.Register(ctx, r) })
	}
	if told := s.tell(ctx, client, err); told != nil && err == nil {
		s.unregister(r, handler)
		err = told
	}
	if err != nil {
		return r, nil, err
	}
	return r, handler, nil
}

// ask calls GetInfo.
func (s *socket) ask(ctx context.Context, client registerapi.RegistrationClient) (Registration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.watcher.cfg.CallTimeout)
	defer cancel()
	info, err := client.GetInfo(ctx, &registerapi.InfoRequest{})
	if err != nil {
		return Registration{}, fmt.Errorf("failed to get plugin info using RPC GetInfo at socket %s: %w", s.path, err)
	}
	r := Registration{Type: info.GetType(), Name: info.GetName(), Endpoint: info.GetEndpoint(), Versions: info.GetSupportedVersions(), Socket: s.path}
	if r.Endpoint == "" {
		r.Endpoint = s.path
	}
	if r.Name == "" {
		return r, errors.New("the plugin says no name")
	}
	return r, nil
}

// tell says to the plugin how it went.
func (s *socket) tell(ctx context.Context, client registerapi.RegistrationClient, failed error) error {
	ctx, cancel := context.WithTimeout(ctx, s.watcher.cfg.CallTimeout)
	defer cancel()
	status := &registerapi.RegistrationStatus{PluginRegistered: failed == nil}
	if failed != nil {
		status.Error = "plugin registration failed with err: " + failed.Error()
	}
	if _, err := client.NotifyRegistrationStatus(ctx, status); err != nil {
		return fmt.Errorf("telling plugin %s that it is registered: %w", s.path, err)
	}
	return nil
}
