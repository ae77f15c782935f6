// Package objectvolumes tests what pods refer to - ConfigMaps, Secrets, tokens,
// trust bundles and certificates of pods - against a real API server with the
// Node authorizer, as volumes of a pod and without an agent around them.
package objectvolumes

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"nodekit.dev/credentials/token"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/test/cluster/follow"
	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/integration/testbed"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

const (
	nodeName  = "node-0"
	namespace = "default"
	signer    = "nodekit.test/signer"
)

func startPlane(t *testing.T) *plane.Plane {
	t.Helper()
	programs, err := install.ControlPlane(t.Context(), os.Stderr)
	if err != nil && os.Getenv(testbed.RequireAllEnv) == "" {
		t.Skipf("needs a control plane: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := plane.Start(t.Context(), plane.Options{Dir: filepath.Join(t.TempDir(), "plane"), Programs: programs})
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

// bench is an administrator and the parts of one node.
type bench struct {
	t     *testing.T
	admin map[string]rest.Interface // by group

	root    string
	cache   *apicache.Cache
	tokens  *token.Manager
	volumes *volume.Manager

	mu      sync.Mutex
	changed map[string]int // how often Changes named a UID
}

func newBench(t *testing.T, adminKubeconfig, nodeKubeconfig string) *bench {
	t.Helper()
	b := &bench{t: t, admin: map[string]rest.Interface{}, root: t.TempDir(), changed: map[string]int{}}
	core, err := follow.Client(adminKubeconfig, corev1.SchemeGroupVersion)
	b.must(err)
	certificates, err := follow.Client(adminKubeconfig, certificatesv1.SchemeGroupVersion)
	b.must(err)
	b.admin = map[string]rest.Interface{"": core, "certificates.k8s.io": certificates}
	b.startNode(nodeKubeconfig)
	return b
}

// startNode makes the parts of a node and runs them.
func (b *bench) startNode(kubeconfig string) {
	b.t.Helper()
	log := slog.New(slog.NewTextHandler(b.t.Output(), nil))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	b.must(err)
	cfg := apiserver.Default()
	cfg.REST = config
	client, err := apiserver.New(cfg, log)
	b.must(err)
	reads := client.Lane(apiserver.LaneRead)
	b.cache, err = apicache.New(apicache.Config{NodeName: nodeName}, apicache.Clients{
		Core: reads.Core(), Node: reads.NodeV1(), Certificates: reads.Certificates(),
	}, log)
	b.must(err)
	b.tokens = token.New(reads.Core(), log)
	b.volumes, err = volume.New(volume.Config{RootDir: b.root}, plugins.FromObjects(plugins.Sources{
		ConfigMaps: b.cache, Secrets: b.cache, TrustBundles: cluster.TrustBundles(cluster.Default(), b.cache), PodCertificates: b.cache, Tokens: tokens{b.tokens},
	}), log)
	b.must(err)
	ctx, cancel := context.WithCancel(b.t.Context())
	var parts sync.WaitGroup
	for _, run := range []func(context.Context) error{client.Run, b.cache.Run, b.volumes.Run, b.pass} {
		parts.Go(func() {
			if err := run(ctx); !errors.Is(err, context.Canceled) {
				b.t.Errorf("a part ended: %v", err)
			}
		})
	}
	b.t.Cleanup(func() {
		cancel()
		parts.Wait()
	})
}

// pass hands changes on, as an agent does.
func (b *bench) pass(ctx context.Context) error {
	for {
		select {
		case change := <-b.cache.Changes():
			b.mu.Lock()
			b.changed[string(change.UID)]++
			b.mu.Unlock()
			b.volumes.Changed(string(change.UID))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *bench) changes(pod *corev1.Pod) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed[string(pod.UID)]
}

type tokens struct{ *token.Manager }

func (t tokens) Token(ctx context.Context, req plugins.TokenRequest) (plugins.Token, error) {
	got, err := t.Manager.Token(ctx, token.Request{
		PodUID: req.PodUID, PodName: req.PodName, Namespace: req.Namespace,
		ServiceAccount: req.ServiceAccount, Audience: req.Audience, Expiration: req.Expiration,
	})
	return plugins.Token{Value: got.Value, RefreshAt: got.RefreshAt}, err
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// create makes an object as the administrator; object becomes what was made.
func (b *bench) create(group, resource string, namespaced bool, object runtime.Object) {
	b.t.Helper()
	b.must(b.admin[group].Post().NamespaceIfScoped(namespace, namespaced).Resource(resource).Body(object).Do(b.t.Context()).Into(object))
}

func (b *bench) put(resource, name string, object runtime.Object) {
	b.t.Helper()
	b.must(b.admin[""].Put().Namespace(namespace).Resource(resource).Name(name).Body(object).Do(b.t.Context()).Error())
}

func (b *bench) delete(resource, name string) {
	b.t.Helper()
	b.must(b.admin[""].Delete().Namespace(namespace).Resource(resource).Name(name).Do(b.t.Context()).Error())
}

// pod makes a pod that is bound to the node.
func (b *bench) pod(name string, sources ...corev1.VolumeSource) *corev1.Pod {
	b.t.Helper()
	no := false
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: corev1.PodSpec{
		NodeName: nodeName, ServiceAccountName: "robot", AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "app", Image: "none"}},
	}}
	for i, source := range sources {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: source})
	}
	b.create("", "pods", true, pod)
	return pod
}

// setUp makes what every test needs; what is there already is fine.
func (b *bench) setUp() {
	b.t.Helper()
	for resource, object := range map[string]runtime.Object{
		"nodes":           &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}},
		"serviceaccounts": &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}},
	} {
		b.create("", resource, resource != "nodes", object)
	}
}

// read reads a file of the pod's first volume.
func (b *bench) read(pod *corev1.Pod, plugin, file string) string {
	data, err := os.ReadFile(filepath.Join(b.root, "pods", string(pod.UID), "volumes/kubernetes.io~"+plugin, "v0", file))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// eventually waits until check is content, and says how long it took.
func (b *bench) eventually(what string, limit time.Duration, check func() bool) time.Duration {
	b.t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	err := testbed.Eventually(ctx, 2*time.Millisecond, func(context.Context) error {
		if !check() {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		b.t.Fatalf("%s: not within %v", what, limit)
	}
	took := time.Since(start)
	b.t.Logf("%s: after %v", what, took)
	return took
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

func configMapVolume(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func TestObjectVolumes(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv(testbed.RequireAllEnv) != "" {
			t.Fatal("needs root to mount")
		}
		t.Skip("needs root to mount")
	}
	p := startPlane(t)
	nodeKubeconfig, err := p.NodeKubeconfig(nodeName)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, p.AdminKubeconfig, nodeKubeconfig)
	b.setUp()
	t.Run("ConfigMap", func(t *testing.T) { b.on(t).configMapComesChangesAndGoes() })
	t.Run("Authorizer", func(t *testing.T) { b.on(t).onlyWhatPodsReferTo() })
	t.Run("Secret", func(t *testing.T) { b.on(t).immutableSecret() })
	t.Run("Projected", func(t *testing.T) { b.on(t).projected() })
	t.Run("PodCertificate", func(t *testing.T) { b.on(t).podCertificate() })
	t.Run("Many", func(t *testing.T) { b.on(t).manyPods() })
	t.Run("Restart", func(t *testing.T) {
		b.on(t).apiServerRestarts(func() {
			b.must(p.KillAPIServer(t.Context()))
			b.must(p.StartAPIServer(t.Context()))
		})
	})
}

// on reports to the test of a part.
func (b *bench) on(t *testing.T) *bench {
	old := b.t
	b.t = t
	t.Cleanup(func() { b.t = old })
	return b
}

// mount mounts the pod's first volume, and unmounts it when the test ends.
func (b *bench) mount(pod *corev1.Pod) error {
	b.t.Cleanup(func() {
		ctx := context.WithoutCancel(b.t.Context())
		if err := b.volumes.RemovePodDir(ctx, string(pod.UID)); err != nil {
			b.t.Error(err)
		}
		b.cache.Release(pod.UID)
	})
	_, err := b.volumes.Mount(b.t.Context(), pod, "v0")
	return err
}

func (b *bench) configMapComesChangesAndGoes() {
	pod := b.pod("conf", configMapVolume("conf"))
	start := time.Now()
	err := b.mount(pod)
	if want := `MountVolume.SetUp failed for volume "v0" : configmap "conf" not found`; err == nil || err.Error() != want {
		b.t.Fatalf("%v, want %s", err, want)
	}
	b.t.Logf("missing: known after %v", time.Since(start))
	b.create("", "configmaps", true, configMap("conf", "1"))
	b.eventually("the news of a new ConfigMap", 10*time.Second, func() bool { return b.changes(pod) == 1 })
	b.must(b.mount(pod))
	if got := b.read(pod, "configmap", "key"); got != "1" {
		b.t.Errorf("got %q", got)
	}
	b.put("configmaps", "conf", configMap("conf", "2"))
	b.eventually("a changed ConfigMap in the volume", 10*time.Second, func() bool { return b.read(pod, "configmap", "key") == "2" })
	b.delete("configmaps", "conf")
	b.eventually("the news of its end", 10*time.Second, func() bool { return b.changes(pod) >= 3 })
	if got := b.read(pod, "configmap", "key"); got != "2" {
		b.t.Errorf("after the end %q", got)
	}
	b.create("", "configmaps", true, configMap("conf", "3"))
	b.eventually("the next one in the volume", 10*time.Second, func() bool { return b.read(pod, "configmap", "key") == "3" })
}

// The Node authorizer lets a node read only what its pods refer to.
func (b *bench) onlyWhatPodsReferTo() {
	b.create("", "secrets", true, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
	_, err := b.cache.Secret(b.t.Context(), "nobody", namespace, "foreign")
	var away interface{ Unreachable() bool }
	if !errors.As(err, &away) || !strings.Contains(err.Error(), "forbidden") {
		b.t.Errorf("%v", err)
	}
	b.cache.Release("nobody")
	n, err := b.cache.Node(b.t.Context())
	if err != nil || n.Name != nodeName {
		b.t.Errorf("%v, %v", n, err)
	}
	if services, err := b.cache.Services(b.t.Context(), "nobody", namespace); err != nil {
		b.t.Errorf("%v, %v", services, err)
	}
	if _, err := b.cache.RuntimeClass(b.t.Context(), "none"); err == nil || err.Error() != `runtimeclass.node.k8s.io "none" not found` {
		b.t.Errorf("%v", err)
	}
}

func (b *bench) immutableSecret() {
	yes := true
	b.create("", "secrets", true, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, Immutable: &yes, Data: map[string][]byte{"user": []byte("root")},
	})
	pod := b.pod("db", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}})
	start := time.Now()
	b.must(b.mount(pod)) // although the authorizer may not know of the pod yet
	b.t.Logf("mounted after %v", time.Since(start))
	if got := b.read(pod, "secret", "user"); got != "root" {
		b.t.Errorf("got %q", got)
	}
	var st unix.Statfs_t
	b.must(unix.Statfs(filepath.Join(b.root, "pods", string(pod.UID), "volumes/kubernetes.io~secret/v0"), &st))
	if st.Type != unix.TMPFS_MAGIC {
		b.t.Error("a Secret is on the disk")
	}
}

func (b *bench) projected() {
	authority := newAuthority(b.t)
	b.create("certificates.k8s.io", "clustertrustbundles", false, &certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: "nodekit.test:signer:one", Labels: map[string]string{"live": "yes"}},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: "a comment\n" + string(authority.pem)},
	})
	name := signer
	pod := b.pod("all", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
		{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "ca.pem", SignerName: &name,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"live": "yes"}}}},
	}}})
	b.must(b.mount(pod))
	if parts := strings.Split(b.read(pod, "projected", "token"), "."); len(parts) != 3 {
		b.t.Errorf("a token of %d parts", len(parts))
	}
	if got := b.read(pod, "projected", "ca.pem"); got != string(authority.pem) {
		b.t.Errorf("trust anchors %q", got)
	}
	if got := b.read(pod, "projected", "labels"); got != `app="all"` {
		b.t.Errorf("labels %q", got)
	}
	changed := pod.DeepCopy()
	changed.Labels["app"] = "renamed"
	b.volumes.Follow(changed)
	b.eventually("changed labels in the volume", 10*time.Second, func() bool { return b.read(pod, "projected", "labels") == `app="renamed"` })
}

func (b *bench) podCertificate() {
	authority := newAuthority(b.t)
	pod := b.pod("cert", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{PodCertificate: &corev1.PodCertificateProjection{SignerName: signer, KeyType: "ECDSAP256", CredentialBundlePath: "bundle.pem"}},
	}}})
	mounted := make(chan error, 1)
	go func() { mounted <- b.mount(pod) }()
	list := &certificatesv1.PodCertificateRequestList{}
	b.eventually("a request", 10*time.Second, func() bool {
		b.must(b.admin["certificates.k8s.io"].Get().Namespace(namespace).Resource("podcertificaterequests").Do(b.t.Context()).Into(list))
		return len(list.Items) == 1
	})
	request := &list.Items[0]
	authority.issue(b.t, request)
	b.must(b.admin["certificates.k8s.io"].Put().Namespace(namespace).Resource("podcertificaterequests").
		Name(request.Name).SubResource("status").Body(request).Do(b.t.Context()).Error())
	b.must(<-mounted)
	bundle := []byte(b.read(pod, "projected", "bundle.pem"))
	if _, err := tls.X509KeyPair(bundle, bundle); err != nil {
		b.t.Errorf("key and certificate do not fit: %v", err)
	}
}

// manyPods is a node that is full: each pod has a ConfigMap of its own.
func (b *bench) manyPods() {
	const count = 100
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		name := fmt.Sprint("many-", i)
		b.create("", "configmaps", true, configMap(name, "1"))
		pods[i] = b.pod(name, configMapVolume(name))
	}
	start := time.Now()
	var all sync.WaitGroup
	for _, pod := range pods {
		all.Go(func() {
			if _, err := b.volumes.Mount(b.t.Context(), pod, "v0"); err != nil {
				b.t.Error(err)
			}
		})
	}
	all.Wait()
	b.t.Logf("%d volumes mounted after %v", count, time.Since(start))
	for i := range pods {
		name := fmt.Sprint("many-", i)
		b.put("configmaps", name, configMap(name, "2"))
	}
	b.eventually("all changes in the volumes", 20*time.Second, func() bool {
		for _, pod := range pods {
			if b.read(pod, "configmap", "key") != "2" {
				return false
			}
		}
		return true
	})
	for _, pod := range pods {
		b.must(b.volumes.RemovePodDir(b.t.Context(), string(pod.UID)))
		b.cache.Release(pod.UID)
	}
}

// apiServerRestarts is a change that nobody watched.
func (b *bench) apiServerRestarts(restart func()) {
	b.create("", "configmaps", true, configMap("kept", "1"))
	pod := b.pod("kept", configMapVolume("kept"))
	b.must(b.mount(pod))
	restart()
	if got := b.read(pod, "configmap", "key"); got != "1" {
		b.t.Errorf("got %q", got)
	}
	b.put("configmaps", "kept", configMap("kept", "2"))
	b.eventually("a change after the restart", 30*time.Second, func() bool { return b.read(pod, "configmap", "key") == "2" })
}

// authority signs certificates of pods.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue writes a certificate into the status of a request.
func (a *authority) issue(t *testing.T, r *certificatesv1.PodCertificateRequest) {
	t.Helper()
	csr, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	from, refresh, until := metav1.NewTime(now.Add(-time.Minute)), metav1.NewTime(now.Add(12*time.Hour)), metav1.NewTime(now.Add(24*time.Hour-time.Minute))
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: from.Time, NotAfter: until.Time, DNSNames: []string{r.Spec.PodName},
	}, a.cert, csr.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	r.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions: []metav1.Condition{{
			Type: certificatesv1.PodCertificateRequestConditionTypeIssued, Status: metav1.ConditionTrue,
			Reason: "Issued", Message: "by the test", LastTransitionTime: metav1.NewTime(now),
		}},
		CertificateChain: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		NotBefore:        &from, BeginRefreshAt: &refresh, NotAfter: &until,
	}
}
