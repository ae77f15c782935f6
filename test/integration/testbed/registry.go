package testbed

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// RegistryHost is how images name the registry. The containerd of each bed is
// told that this host is its bed's registry, so that manifests
// need not know the port.
const RegistryHost = "registry.nodekit.test"

// Registry is an image registry of one bed that counts what is asked of it
// and fails on demand. Its methods are safe for concurrent use.
type Registry struct {
	addr   string // host:port
	server *http.Server
	done   chan struct{}

	mu     sync.Mutex
	pulls  map[string]int // manifest reads by repository
	broken map[string]int // status to answer with, by repository
}

// newRegistry starts an empty registry on a free port of an address of this
// machine that the bed reaches.
func newRegistry(ip netip.Addr) (*Registry, error) {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		return nil, err
	}
	r := &Registry{addr: listener.Addr().String(), done: make(chan struct{}), pulls: map[string]int{}, broken: map[string]int{}}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.server = &http.Server{Handler: r.watch(store), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.done)
		// It ends with ErrServerClosed, when Close is called.
		_ = r.server.Serve(listener)
	}()
	return r, nil
}

// Push puts an image under a reference such as PauseImage. Pushing another
// image to the same reference moves the tag.
func (r *Registry) Push(ctx context.Context, ref string, img v1.Image) error {
	repository, found := strings.CutPrefix(ref, RegistryHost+"/")
	if !found {
		return fmt.Errorf("registry: %s is not of %s", ref, RegistryHost)
	}
	dst, err := name.ParseReference(r.addr+"/"+repository, name.Insecure)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if err := remote.Write(dst, img, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("registry: push %s: %w", ref, err)
	}
	return nil
}

// Break makes each manifest read of a repository, such as "web", fail with that
// HTTP status until Break is called with 0.
func (r *Registry) Break(repository string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken[repository] = status
}

// Pulls says how many times a runtime asked for manifests of a repository. One
// pull asks at least once.
func (r *Registry) Pulls(repository string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulls[repository]
}

// Close stops serving.
func (r *Registry) Close() error {
	err := r.server.Close()
	<-r.done
	return err
}

func (r *Registry) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		repository, isManifest := manifestRead(req)
		if !isManifest {
			next.ServeHTTP(w, req)
			return
		}
		if status := r.count(repository); status != 0 {
			http.Error(w, "broken by the test", status)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func (r *Registry) count(repository string) (status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulls[repository]++
	return r.broken[repository]
}

// manifestRead finds the repository of a runtime's request such as
// GET /v2/web/manifests/1.
func manifestRead(req *http.Request) (string, bool) {
	isRead := req.Method == http.MethodGet || req.Method == http.MethodHead
	// Push looks first whether the image is there.
	if !isRead || strings.HasPrefix(req.UserAgent(), "go-containerregistry") {
		return "", false
	}
	repository, _, found := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v2/"), "/manifests/")
	return repository, found
}
