package apiserver

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// fakeAPI is an HTTPS server that notes the requests and answers with handle.
type fakeAPI struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newFakeAPI(t *testing.T, handle http.HandlerFunc) *fakeAPI {
	f := &fakeAPI{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r)
		f.mu.Unlock()
		handle(w, r)
	}))
	f.EnableHTTP2 = true
	f.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	f.StartTLS()
	t.Cleanup(f.CloseClientConnections)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeAPI) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*http.Request(nil), f.seen...)
}

func (f *fakeAPI) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

func (f *fakeAPI) config() Config {
	cfg := Default()
	cfg.REST = &rest.Config{Host: f.URL, TLSClientConfig: rest.TLSClientConfig{CAData: f.authority()}}
	return cfg
}

func mustNew(t *testing.T, cfg Config) *Client {
	t.Helper()
	client, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseAll)
	return client
}

// reply answers with an object in the API server's protobuf.
func reply(t *testing.T, w http.ResponseWriter, obj runtime.Object) {
	t.Helper()
	codecs, err := codecs(stockGroups())
	if err != nil {
		t.Error(err)
		return
	}
	gvks, _, err := codecsScheme().ObjectKinds(obj)
	if err != nil {
		t.Error(err)
		return
	}
	for _, info := range codecs.SupportedMediaTypes() {
		if info.MediaType == Protobuf {
			w.Header().Set("Content-Type", Protobuf)
			if err := codecs.EncoderForVersion(info.Serializer, gvks[0].GroupVersion()).Encode(obj, w); err != nil {
				t.Error(err)
			}
		}
	}
}

func codecsScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, g := range stockGroups() {
		_ = g.AddToScheme(scheme)
	}
	return scheme
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(Context(t.Context(), nil), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestRequestsByGroup(t *testing.T) {
	api := newFakeAPI(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "leases"):
			reply(t, w, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "edge-7"}})
		case strings.Contains(r.URL.Path, "runtimeclasses"):
			reply(t, w, &nodev1.RuntimeClass{Handler: "kata"})
		default:
			reply(t, w, &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}})
		}
	})
	cfg := api.config()
	cfg.UserAgent = "kubelet/v1.37.0"
	var mu sync.Mutex
	var told []Request
	cfg.Observer.Request = func(r Request) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r)
	}
	client := mustNew(t, cfg)
	ctx := within(t)

	var pods corev1.PodList
	opts := metav1.ListOptions{FieldSelector: "spec.nodeName=edge-7", ResourceVersion: "5"}
	err := client.Lane(LaneRead).Core().Get().Resource("pods").VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Into(&pods)
	if err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "web" {
		t.Fatalf("pods %v, %v", pods.Items, err)
	}
	var lease coordinationv1.Lease
	err = client.Lane(LaneLease).Coordination().Put().Namespace("kube-node-lease").Resource("leases").Name("edge-7").Body(&lease).Do(ctx).Into(&lease)
	if err != nil || lease.Name != "edge-7" {
		t.Fatalf("lease %v, %v", lease, err)
	}
	var class nodev1.RuntimeClass
	get := metav1.GetOptions{ResourceVersion: "0"}
	err = client.Lane(LaneRead).NodeV1().Get().Resource("runtimeclasses").Name("kata").VersionedParams(&get, metav1.ParameterCodec).Do(ctx).Into(&class)
	if err != nil || class.Handler != "kata" {
		t.Fatalf("runtime class %v, %v", class, err)
	}

	want := []string{
		"GET /api/v1/pods?fieldSelector=spec.nodeName%3Dedge-7&resourceVersion=5",
		"PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-7",
		"GET /apis/node.k8s.io/v1/runtimeclasses/kata?resourceVersion=0",
	}
	for i, r := range api.requests() {
		if got := r.Method + " " + r.URL.String(); got != want[i] {
			t.Errorf("request %s, want %s", got, want[i])
		}
		if r.ProtoMajor != 2 || r.UserAgent() != "kubelet/v1.37.0" || r.Header.Get("Accept") != Protobuf+","+JSON {
			t.Errorf("request %d: %s, %v", i, r.Proto, r.Header)
		}
		if r.Method == "PUT" && r.Header.Get("Content-Type") != Protobuf {
			t.Errorf("the body went as %s", r.Header.Get("Content-Type"))
		}
	}
	if len(told) != 3 || told[1].Lane != LaneLease || told[1].Code != 200 || told[1].Method != "PUT" || told[0].Lane != LaneRead {
		t.Errorf("observed %+v", told)
	}
}

func TestEveryGroupHasAClientInEachLane(t *testing.T) {
	cfg := Default()
	cfg.REST = &rest.Config{Host: "https://10.0.0.1:6443"}
	client := mustNew(t, cfg)
	for id := range laneCount {
		lane := client.Lane(id)
		for path, got := range map[string]rest.Interface{
			"/api/v1": lane.Core(), "/apis/coordination.k8s.io/v1": lane.Coordination(), "/apis/node.k8s.io/v1": lane.NodeV1(),
			"/apis/authentication.k8s.io/v1": lane.Authentication(), "/apis/authorization.k8s.io/v1": lane.Authorization(),
			"/apis/certificates.k8s.io/v1": lane.Certificates(), "/apis/storage.k8s.io/v1": lane.Storage(), "/apis/resource.k8s.io/v1": lane.Resource(),
		} {
			if url := got.Get().Resource("x").URL().String(); url != "https://10.0.0.1:6443"+path+"/x" {
				t.Errorf("%s: %s, want %s", id, url, path)
			}
			if limited := got.GetRateLimiter(); limited == nil {
				t.Errorf("%s, %s: no limit", id, path)
			}
		}
	}
	if client.Lane(LaneRead).Group(corev1.SchemeGroupVersion) != client.Lane(LaneRead).Core() || client.Lane(LaneRead).Group(metav1.Unversioned) == nil {
		t.Error("Group does not find what Core is")
	}
}

func TestAnswersKeepTheirClass(t *testing.T) {
	api := newFakeAPI(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", JSON)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"no such pod"}`)
	})
	client := mustNew(t, api.config())
	err := client.Lane(LaneRead).Core().Get().Resource("pods").Name("x").Do(within(t)).Error()
	if !apierrors.IsNotFound(err) {
		t.Fatalf("error %v is not NotFound", err)
	}
}

// A token file that is missing at first, and changes, needs no restart.
func TestFilesAreReadWhenNeeded(t *testing.T) {
	api := newFakeAPI(t, func(w http.ResponseWriter, _ *http.Request) { reply(t, w, &corev1.Pod{}) })
	cfg := api.config()
	cfg.REST.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	client := mustNew(t, cfg)
	get := func() error {
		return client.Lane(LaneRead).Core().Get().Resource("pods").Name("x").Do(within(t)).Error()
	}
	if err := get(); err == nil || !strings.Contains(err.Error(), cfg.REST.BearerTokenFile) {
		t.Fatalf("error %v does not name the file", err)
	}
	if err := os.WriteFile(cfg.REST.BearerTokenFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	if seen := api.requests(); len(seen) != 1 || seen[0].Header.Get("Authorization") != "Bearer secret" {
		t.Fatalf("requests %v", seen)
	}
}

// lateCredentials are there from when cert is set and ready is closed.
type lateCredentials struct {
	ready chan struct{}
	cert  *tls.Certificate
}

func (l *lateCredentials) Ready() <-chan struct{} { return l.ready }
func (l *lateCredentials) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return l.cert, nil
}

func TestRequestsWaitForCredentials(t *testing.T) {
	api := newFakeAPI(t, func(w http.ResponseWriter, _ *http.Request) { reply(t, w, &corev1.Pod{}) })
	late := &lateCredentials{ready: make(chan struct{})}
	cfg := api.config()
	cfg.Credentials = late
	cfg.REST.BearerToken = "bootstrap" // must not be used
	client := mustNew(t, cfg)
	get := func(ctx context.Context) error {
		return client.Lane(LaneRead).Core().Get().Resource("pods").Name("x").Do(ctx).Error()
	}
	ctx, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
	defer cancel()
	if err := get(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no client certificate") {
		t.Fatalf("without credentials: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- get(within(t)) }()
	pair := api.TLS.Certificates[0]
	late.cert = &pair
	close(late.ready)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	seen := api.requests()
	if len(seen) != 1 || len(seen[0].TLS.PeerCertificates) != 1 || seen[0].Header.Get("Authorization") != "" {
		t.Fatalf("%d requests, certificates %v", len(seen), seen[0].TLS.PeerCertificates)
	}
}

// release-facts 9.4: a heartbeat that fails leaves a watch alone with HTTP/2
// and closes its connection without.
func TestHeartbeatFailed(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP2", true: "DISABLE_HTTP2"}[disabled], func(t *testing.T) {
			begun := make(chan struct{}, 1)
			api := newFakeAPI(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.RawQuery, "watch") {
					reply(t, w, &coordinationv1.Lease{})
					return
				}
				w.Header().Set("Content-Type", JSON)
				w.(http.Flusher).Flush()
				begun <- struct{}{}
				<-r.Context().Done()
			})
			cfg := api.config()
			cfg.ContentType = JSON
			cfg.HTTP2.Disabled = disabled
			client := mustNew(t, cfg)
			ctx := within(t)
			watching, err := client.Lane(LaneRead).Core().Get().Resource("pods").Param("watch", "1").Watch(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer watching.Stop()
			<-begun
			if n := open(client.heartbeat.dialer) + open(client.rest.dialer); n != 1 {
				t.Fatalf("%d connections for one watch", n)
			}
			if err := renew(ctx, client); err != nil {
				t.Fatal(err)
			}
			client.HeartbeatFailed()
			if n := open(client.heartbeat.dialer); n != 0 {
				t.Fatalf("%d connections for heartbeats left", n)
			}
			if disabled {
				for event := range watching.ResultChan() { // ends
					t.Log(event)
				}
				return
			}
			select {
			case event, ok := <-watching.ResultChan():
				t.Fatalf("the watch ended or said %v (%v)", event, ok)
			default:
			}
			if n := open(client.rest.dialer); n != 1 {
				t.Fatalf("%d connections for the watch", n)
			}
			if err := renew(ctx, client); err != nil {
				t.Fatalf("heartbeat on a new connection: %v", err)
			}
		})
	}
}

func renew(ctx context.Context, client *Client) error {
	return client.Lane(LaneLease).Coordination().Get().Namespace("kube-node-lease").Resource("leases").Name("x").Do(ctx).Error()
}

func open(d *dialer) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// CloseAll makes the next request log in again.
func TestCloseAllConnectsAnew(t *testing.T) {
	var mu sync.Mutex
	remotes := map[string]bool{}
	api := newFakeAPI(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		remotes[r.RemoteAddr] = true
		reply(t, w, &corev1.Pod{})
	})
	client := mustNew(t, api.config())
	for range 3 {
		for range 2 {
			if err := client.Lane(LaneRead).Core().Patch(types.MergePatchType).Resource("pods").Name("x").Body([]byte("{}")).Do(within(t)).Error(); err != nil {
				t.Fatal(err)
			}
		}
		client.CloseAll()
	}
	if len(remotes) != 3 {
		t.Fatalf("%d connections, want 3", len(remotes))
	}
}

func TestValidate(t *testing.T) {
	ok := Default()
	ok.REST = &rest.Config{Host: "10.0.0.1"}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"good":            {func(*Config) {}, ""},
		"no limit":        {func(c *Config) { c.QPS, c.Burst = 0, 0 }, ""},
		"no server":       {func(c *Config) { c.REST = nil }, "no API server"},
		"not a URL":       {func(c *Config) { c.REST = &rest.Config{Host: "https://a b:1"} }, "is not the URL"},
		"no burst":        {func(c *Config) { c.Burst = 0 }, "Burst"},
		"no event burst":  {func(c *Config) { c.EventBurst = 0 }, "EventBurst"},
		"times backwards": {func(c *Config) { c.HTTP2.ReadIdle = -1 }, "HTTP2"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := ok
			c.change(&cfg)
			_, err := New(cfg, nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestHTTP2FromEnv(t *testing.T) {
	env := map[string]string{"DISABLE_HTTP2": "1", "HTTP2_READ_IDLE_TIMEOUT_SECONDS": "0", "HTTP2_PING_TIMEOUT_SECONDS": "7"}
	getenv := func(name string) string { return env[name] }
	if h, err := HTTP2FromEnv(getenv); err != nil || h != (HTTP2{Disabled: true, PingTimeout: 7 * time.Second}) {
		t.Fatalf("%+v, %v", h, err)
	}
	env = map[string]string{"HTTP2_PING_TIMEOUT_SECONDS": "soon"}
	if h, err := HTTP2FromEnv(getenv); err == nil || !strings.Contains(err.Error(), "HTTP2_PING_TIMEOUT_SECONDS") || h != Default().HTTP2 {
		t.Fatalf("%+v, %v", h, err)
	}
}
