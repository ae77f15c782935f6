// Package connection tests what connects a node to the API server - its
// certificates, its requests, the tokens of its pods - against a real one,
// without an agent around it.
package connection

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/credentials/nodecert"
	"nodekit.dev/credentials/token"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/integration/testbed"
)

const node = "node-0"

// signing is how long certificates live. The signer puts their birth five
// minutes back, so that they are due 25 to 115 seconds after they came.
const signing = 3 * time.Minute

func startPlane(t *testing.T) *plane.Plane {
	t.Helper()
	programs, err := install.ControlPlane(t.Context(), os.Stderr)
	if err != nil && os.Getenv(testbed.RequireAllEnv) == "" {
		t.Skipf("needs a control plane: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := plane.Start(t.Context(), plane.Options{Dir: filepath.Join(t.TempDir(), "plane"), Programs: programs, SigningDuration: signing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := p.Stop(undo); err != nil {
			t.Error(err)
		}
	})
	return p
}

// member is the connection of one node.
type member struct {
	certs     *nodecert.Manager
	client    *apiserver.Client
	dir       string
	bootstrap string
	rotated   chan struct{}
	answers   sync.Map // HTTP status: seen
}

// join connects a node that has a token and nothing else.
func join(t *testing.T, p *plane.Plane) *member {
	t.Helper()
	secret, err := p.BootstrapToken(t.Context(), "joiner", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{dir: t.TempDir(), rotated: make(chan struct{}, 10)}
	if m.bootstrap, err = p.TokenKubeconfig("joiner", secret); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	m.certs, err = nodecert.New(nodecert.Config{
		NodeName: node, Dir: filepath.Join(m.dir, "pki"), Kubeconfig: filepath.Join(m.dir, "kubelet.conf"), BootstrapKubeconfig: m.bootstrap,
		RotateCertificates: true, ServerTLSBootstrap: true, RotateKubeletServerCertificate: true,
	}, func() []corev1.NodeAddress {
		return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: node}}
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := m.certs.Endpoint()
	if err != nil {
		t.Fatal(err)
	}
	cfg := apiserver.Default()
	cfg.REST, cfg.Credentials = endpoint.REST, m.certs
	cfg.Observer.Request = func(r apiserver.Request) {
		m.answers.Store(r.Code, true)
		m.certs.Answered(r.Code)
	}
	if m.client, err = apiserver.New(cfg, log); err != nil {
		t.Fatal(err)
	}
	m.certs.OnRotate(m.client.CloseAll)
	m.certs.OnRotate(func() { m.rotated <- struct{}{} })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for _, run := range []func(context.Context) error{m.certs.Run, m.client.Run} {
		go func() { done <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	return m
}

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(apiserver.Context(t.Context(), nil), limit)
	t.Cleanup(cancel)
	return ctx
}

func wait(t *testing.T, what string, limit time.Duration, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(limit):
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// TestConnection: one control plane for all, since starting it is what takes
// the time.
func TestConnection(t *testing.T) {
	p := startPlane(t)
	m := join(t, p)
	wait(t, "a client certificate", time.Minute, m.certs.Ready())
	<-m.rotated

	t.Run("objects", func(t *testing.T) { m.objects(t) })
	t.Run("tokens", func(t *testing.T) { m.tokens(t, p) })
	t.Run("serving certificate", func(t *testing.T) { m.serving(t, p) })
	t.Run("API server away", func(t *testing.T) { m.away(t, p) })
	t.Run("rotation", func(t *testing.T) { m.rotation(t) })
}

// objects writes and watches in protobuf what the Node authorizer allows.
func (m *member) objects(t *testing.T) {
	ctx := within(t, time.Minute)
	core := m.client.Lane(apiserver.LaneNodeStatus).Core()
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := core.Post().Resource("nodes").Body(made).Do(ctx).Into(made); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: node, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: made.UID}}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &made.Name, RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
	leases := m.client.Lane(apiserver.LaneLease).Coordination()
	if err := leases.Post().Namespace("kube-node-lease").Resource("leases").Body(lease).Do(ctx).Into(lease); err != nil || lease.ResourceVersion == "" {
		t.Fatalf("%v, %v", lease, err)
	}
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + node, ResourceVersion: made.ResourceVersion}
	w, err := m.client.Lane(apiserver.LaneRead).Core().Get().Resource("nodes").VersionedParams(&opts, metav1.ParameterCodec).Param("watch", "true").Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`)
	if err := core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(node).SubResource("status").Body(patch).Do(ctx).Error(); err != nil {
		t.Fatal(err)
	}
	for {
		event, ok := <-w.ResultChan()
		if !ok {
			t.Fatal("the watch ended")
		}
		if got, ok := event.Object.(*corev1.Node); ok && len(got.Status.Conditions) == 1 && got.Status.Conditions[0].Reason == "KubeletReady" {
			break
		}
	}
	err = m.client.Lane(apiserver.LaneRead).Core().Get().Namespace("kube-system").Resource("secrets").Name("bootstrap-token-joiner").Do(ctx).Error()
	if !apierrors.IsForbidden(err) {
		t.Errorf("another's secret: %v", err)
	}
}

// tokens are for pods on this node, and the API server accepts them.
func (m *member) tokens(t *testing.T, p *plane.Plane) {
	ctx := within(t, time.Minute)
	var pod corev1.Pod
	err := p.Apply(ctx, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default}, spec: {nodeName: "+node+", containers: [{name: a, image: a}]}}")
	for err != nil && strings.Contains(err.Error(), "serviceaccount") { // not made yet
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			t.Fatal(err)
		}
		err = p.Apply(ctx, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default}, spec: {nodeName: "+node+", containers: [{name: a, image: a}]}}")
	}
	if err != nil {
		t.Fatal(err)
	}
	read := m.client.Lane(apiserver.LaneRead).Core()
	if err := read.Get().Namespace("default").Resource("pods").Name("web").Do(ctx).Into(&pod); err != nil {
		t.Fatal(err)
	}
	tokens := token.New(read, nil)
	req := token.Request{PodUID: pod.UID, PodName: "web", Namespace: "default", ServiceAccount: "default", Expiration: 10 * time.Minute}
	got, err := tokens.Token(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(got.RefreshAt); left < 7*time.Minute || left > 8*time.Minute {
		t.Errorf("refresh in %v", left)
	}
	who, err := p.Kubectl(ctx, "--token="+got.Value, "--kubeconfig=/dev/null", "--server="+p.Server, "--certificate-authority="+p.CAFile(), "auth", "whoami", "-o=jsonpath={.status.userInfo.username}")
	if err != nil || who != "system:serviceaccount:default:default" {
		t.Errorf("the token is of %q, %v", who, err)
	}
	req.PodUID = "another"
	if _, err := tokens.Token(ctx, req); !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		t.Errorf("a token for a pod that is not here: %v", err)
	}
	req.PodUID, req.ServiceAccount = pod.UID, "gone"
	if _, err := tokens.Token(ctx, req); err == nil || !strings.Contains(err.Error(), "default/gone") {
		t.Errorf("a token of an account that is not the pod's: %v", err)
	}
}

// serving certificates wait for a person.
func (m *member) serving(t *testing.T, p *plane.Plane) {
	ctx := within(t, time.Minute)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := m.certs.Server(nil)
		if err == nil {
			t.Fatal("a serving certificate that nobody approved")
		}
		if _, name, ok := strings.Cut(err.Error(), "kubectl certificate approve "); ok {
			if _, err := p.Kubectl(ctx, "certificate", "approve", name); err != nil {
				t.Fatal(err)
			}
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
	wait(t, "a serving certificate", time.Minute, m.certs.ServerReady())
	leaf := m.certs.Leaf(nodecert.KindServer)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.Authority.Cert)
	for _, name := range []string{node, "10.0.0.1"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// away: requests fail while there is no API server and succeed right after.
func (m *member) away(t *testing.T, p *plane.Plane) {
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(within(t, time.Minute), limit)
		defer cancel()
		return m.client.Lane(apiserver.LaneRead).Core().Get().Resource("nodes").Name(node).Do(ctx).Error()
	}
	if err := p.KillAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := get(2 * time.Second); err == nil {
		t.Fatal("an answer of a dead API server")
	}
	if err := p.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := get(30 * time.Second); err != nil {
		t.Fatal(err)
	}
}

// rotation: the certificate is replaced without the token, and requests go on
// with it when the first one has expired.
func (m *member) rotation(t *testing.T) {
	first := m.certs.Leaf(nodecert.KindClient)
	if err := os.Remove(m.bootstrap); err != nil {
		t.Fatal(err)
	}
	wait(t, "another certificate", signing, m.rotated)
	second := m.certs.Leaf(nodecert.KindClient)
	if !second.NotAfter.After(first.NotAfter) {
		t.Fatalf("the first certificate ends at %v, the second at %v", first.NotAfter, second.NotAfter)
	}
	t.Logf("rotated %v before the first certificate's end", time.Until(first.NotAfter).Round(time.Second))
	select {
	case <-time.After(time.Until(first.NotAfter) + time.Second):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	var csrs certificatesv1.CertificateSigningRequestList
	if err := m.client.Lane(apiserver.LaneRead).Certificates().Get().Resource("certificatesigningrequests").Do(within(t, time.Minute)).Into(&csrs); err != nil {
		t.Fatal(err)
	}
	for _, csr := range csrs.Items {
		if !strings.HasPrefix(csr.Name, "node-csr-") {
			t.Errorf("signing request %s", csr.Name)
		}
	}
	if _, refused := m.answers.Load(http.StatusUnauthorized); refused {
		t.Error("the API server refused a request")
	}
}
