package kubeletapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/authz"
	"nodekit.dev/node/server/kubeletapi"
	adapters "nodekit.dev/node/wire/serving"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/cri"
	"nodekit.dev/test/integration/testbed"
)

// rig is the API over HTTPS, in front of one pod of a real containerd.
type rig struct {
	bed     *testbed.Bed
	cri     *cri.Client
	ends    *kubeletapi.Ends
	client  *rest.Config
	address string
	sandbox runtime.SandboxConfig
	ids     map[string]string // of containers

	mu     sync.Mutex
	view   node.PodView
	served map[string]int // translated streams
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newRig starts a bed with a pod of these containers, and the API.
func newRig(t *testing.T, version string, containers ...corev1.Container) *rig {
	t.Helper()
	testbed.Require(t)
	bed, err := testbed.Start(t.Context(), testbed.Options{Version: version})
	must(t, err)
	t.Cleanup(func() { must(t, bed.Stop(context.WithoutCancel(t.Context()))) })
	for _, image := range []string{testbed.BusyboxImage, testbed.WebImage} {
		must(t, bed.Pull(t.Context(), image))
	}
	client, err := cri.New(cri.Config{Endpoint: bed.Endpoint()})
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	r := &rig{bed: bed, cri: client, ends: kubeletapi.NewEnds(), ids: map[string]string{}, served: map[string]int{}}
	r.runPod(t, containers)
	r.serve(t)
	return r
}

func (r *rig) runPod(t *testing.T, containers []corev1.Container) {
	t.Helper()
	r.sandbox = runtime.SandboxConfig{
		Name: "web", Namespace: "default", UID: "uid-1", LogDirectory: filepath.Join(r.bed.PodLogs, "default_web_uid-1"),
		CgroupParent: r.bed.CgroupRoot + "/pod",
		Labels:       map[string]string{runtime.LabelPodUID: "uid-1", runtime.LabelPodName: "web", runtime.LabelPodNamespace: "default"},
	}
	must(t, os.MkdirAll(r.sandbox.LogDirectory, 0o750))
	id, err := r.cri.RunSandbox(t.Context(), r.sandbox)
	must(t, err)
	for _, c := range containers {
		labels := map[string]string{runtime.LabelContainerName: c.Name, runtime.LabelPodUID: "uid-1"}
		must(t, os.MkdirAll(filepath.Join(r.sandbox.LogDirectory, c.Name), 0o750))
		r.ids[c.Name], err = r.cri.CreateContainer(t.Context(), id, runtime.ContainerConfig{
			Name: c.Name, Image: runtime.Image{Ref: c.Image}, Command: c.Command, Args: c.Args, Labels: labels,
			LogPath: c.Name + "/0.log", Stdin: c.Stdin, TTY: c.TTY,
		}, r.sandbox)
		must(t, err)
		must(t, r.cri.StartContainer(t.Context(), r.ids[c.Name]))
	}
	r.view = node.PodView{UID: "uid-1", Namespace: "default", Name: "web", Phase: lifecycle.Running, Pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID("uid-1"), Namespace: "default", Name: "web"},
		Spec:       corev1.PodSpec{Containers: containers},
	}}
	r.look(t)
}

// look brings the status up to date, as the node would.
func (r *rig) look(t *testing.T) {
	t.Helper()
	pod, err := r.cri.LookPod(t.Context(), "uid-1")
	must(t, err)
	status := corev1.PodStatus{Phase: corev1.PodRunning}
	for _, c := range pod.Containers {
		s := corev1.ContainerStatus{Name: c.Name, ContainerID: "containerd://" + c.ID}
		if c.State == runtime.ContainerRunning {
			s.State.Running = &corev1.ContainerStateRunning{}
		} else {
			s.State.Terminated = &corev1.ContainerStateTerminated{ContainerID: s.ContainerID}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	r.mu.Lock()
	r.view.Status = status
	r.mu.Unlock()
	r.ends.PodStatus(node.StatusUpdate{UID: "uid-1", Phase: lifecycle.Running, Status: status})
}

// Pods implements kubeletapi.Pods.
func (r *rig) Pods() []node.PodView {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []node.PodView{r.view}
}

func (r *rig) count(subresource string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served[subresource]++
}

func (r *rig) translated(subresource string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served[subresource]
}

// serve runs the API with a certificate of its own, open to everybody.
func (r *rig) serve(t *testing.T) {
	t.Helper()
	cfg := kubeletapi.Default()
	cfg.PodLogsDir, cfg.CheckpointDir = r.bed.PodLogs, filepath.Join(r.bed.Dir, "checkpoints")
	routes, err := kubeletapi.Routes(cfg, kubeletapi.Parts{
		Pods: r, Runtime: r.cri, Logs: adapters.ContainerLogs(nil), Ends: r.ends, Commands: adapters.Commander(r.cri), Checkpointer: r.cri,
		WebSocket: r.count,
	})
	must(t, err)
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	must(t, err)
	serving, err := tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r.address = l.Addr().String()
	must(t, l.Close())
	api, err := server.NewAPI(server.APIConfig{
		Address: r.address, NodeName: "node-1", Anonymous: true,
		TLS: server.TLSConfig{Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }},
	}, server.APIParts{Routes: routes, Authorizers: []node.Ordered[server.Authorizer]{{Name: "always", Value: authz.AlwaysAllow()}}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	t.Cleanup(func() {
		begun := time.Now()
		cancel()
		must(t, <-done)
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("the API took %v to stop", took)
		}
	})
	r.client = &rest.Config{Host: "https://" + r.address, TLSClientConfig: rest.TLSClientConfig{CAData: certPEM, ServerName: "127.0.0.1"}}
	must(t, testbed.Eventually(t.Context(), 10*time.Millisecond, func(context.Context) error {
		_, _, err := r.get("/healthz", nil)
		return err
	}))
}

// url is one of the API's.
func (r *rig) url(path string, query url.Values) *url.URL {
	return &url.URL{Scheme: "https", Host: r.address, Path: path, RawQuery: query.Encode()}
}

// get reads all of an answer.
func (r *rig) get(path string, query url.Values) (int, string, error) {
	client, err := rest.HTTPClientFor(r.client)
	if err != nil {
		return 0, "", err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get(r.url(path, query).String())
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := readAll(resp)
	return resp.StatusCode, text, err
}

func readAll(resp *http.Response) (string, error) {
	var text []byte
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		text = append(text, buf[:n]...)
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return string(text), err
		}
	}
}

func shell(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: testbed.BusyboxImage, Command: []string{"sh", "-c", script}}
}

func ports(pairs ...int) []string {
	var out []string
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, fmt.Sprintf("%s:%s", strconv.Itoa(pairs[i]), strconv.Itoa(pairs[i+1])))
	}
	return out
}
