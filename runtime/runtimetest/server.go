package runtimetest

import (
	"net"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// API says which version of the CRI a Server speaks.
type API string

// The versions. A server of v1alpha2 answers v1 with code Unimplemented, as
// runtimes did that have the old version only.
const (
	APIv1       API = "v1"
	APIv1alpha2 API = "v1alpha2"
)

// Server is the CRI over a World.
type Server struct {
	world  *World
	api    API
	listen func() (net.Listener, error)
	socket string

	mu     sync.Mutex
	server *grpc.Server // nil while the runtime is down
	served sync.WaitGroup
}

// Serve serves CRI v1 on a unix socket in dir until the test ends. The path of
// a socket is limited to 107 bytes.
func (w *World) Serve(t testing.TB, dir string) *Server {
	t.Helper()
	return w.ServeAPI(t, dir, APIv1)
}

// ServeAPI is Serve for one version of the CRI.
func (w *World) ServeAPI(t testing.TB, dir string, api API) *Server {
	t.Helper()
	socket := filepath.Join(dir, "cri.sock")
	s := w.serve(t, api, func() (net.Listener, error) {
		var lc net.ListenConfig
		return lc.Listen(t.Context(), "unix", socket)
	})
	s.socket = socket
	return s
}

// ServeOn serves CRI v1 on listeners of the caller, such as a bufconn; listen
// is called again when the runtime comes back after Down or Restart.
func (w *World) ServeOn(t testing.TB, listen func() (net.Listener, error)) *Server {
	t.Helper()
	return w.serve(t, APIv1, listen)
}

func (w *World) serve(t testing.TB, api API, listen func() (net.Listener, error)) *Server {
	t.Helper()
	s := &Server{world: w, api: api, listen: listen}
	if err := s.start(); err != nil {
		t.Fatalf("runtimetest: serve the CRI: %v", err)
	}
	w.mu.Lock()
	w.servers[s] = true
	w.mu.Unlock()
	t.Cleanup(func() {
		w.mu.Lock()
		delete(w.servers, s)
		w.mu.Unlock()
		s.stop()
	})
	return s
}

// Socket is the path of the unix socket, Endpoint the same as a URL.
func (s *Server) Socket() string { return s.socket }

// Endpoint is the URL of the socket, as --container-runtime-endpoint takes it.
func (s *Server) Endpoint() string { return "unix://" + s.socket }

func (s *Server) start() error {
	listener, err := s.listen()
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	s.register(server)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
	s.served.Go(func() {
		// Serve ends with an error of its own only when the listener broke,
		// which the clients see.
		_ = server.Serve(listener)
	})
	return nil
}

// maxMessage is containerd's limit.
const maxMessage = 16 << 20

// stop drops the connections and streams and waits for the calls to end.
func (s *Server) stop() {
	s.mu.Lock()
	server := s.server
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
	s.served.Wait()
}

func (s *Server) register(server *grpc.Server) {
	runtimeService := renamed(criv1.RuntimeService_ServiceDesc, s.api)
	imageService := renamed(criv1.ImageService_ServiceDesc, s.api)
	server.RegisterService(&runtimeService, &runtimeServer{world: s.world, api: s.api})
	server.RegisterService(&imageService, &imageServer{world: s.world})
}

// renamed is the service under the package name of another version. The
// messages of both versions are the same on the wire.
func renamed(service grpc.ServiceDesc, api API) grpc.ServiceDesc {
	const prefix = "runtime."
	if api != APIv1 {
		service.ServiceName = prefix + string(api) + service.ServiceName[len(prefix+string(APIv1)):]
	}
	return service
}

// Down stops the runtime: connections and streams drop, sockets refuse, and
// direct calls fail as unavailable. What runs goes on running.
func (w *World) Down() {
	w.mu.Lock()
	if w.down {
		w.mu.Unlock()
		return
	}
	w.down = true
	close(w.life)
	w.events.dropAll()
	servers := w.serversLocked()
	w.mu.Unlock()
	for _, s := range servers {
		s.stop()
	}
}

// Up brings the runtime back with all that it held.
func (w *World) Up() error {
	w.mu.Lock()
	if !w.down {
		w.mu.Unlock()
		return nil
	}
	w.down = false
	w.life = make(chan struct{})
	servers := w.serversLocked()
	w.mu.Unlock()
	for _, s := range servers {
		if err := s.start(); err != nil {
			return err
		}
	}
	return nil
}

// Restart is Down and Up.
func (w *World) Restart() error {
	w.Down()
	return w.Up()
}

// Reboot is a restart of the machine: every sandbox is dead, and every
// container that ran has ended with exit code 255 and reason "Unknown".
func (w *World) Reboot() error {
	w.Down()
	w.mu.Lock()
	for _, uid := range w.uidsLocked() {
		for _, c := range w.pods[uid].containers {
			w.exitLocked(c, ending{code: codeLost, reason: "Unknown"})
		}
		for _, s := range w.pods[uid].sandboxes {
			w.endSandboxLocked(s)
		}
	}
	w.mu.Unlock()
	return w.Up()
}

func (w *World) serversLocked() []*Server {
	all := make([]*Server, 0, len(w.servers))
	for s := range w.servers {
		all = append(all, s)
	}
	return all
}
