package csi_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
)

// cluster binds each claim to the PersistentVolume pv-CLAIM of the volume of
// that name, and has one CSIDriver object.
type cluster struct {
	object *storagev1.CSIDriver
	change func(*volume.Source)
}

func (c *cluster) Claimed(_ context.Context, pod *corev1.Pod, v corev1.Volume) (volume.Source, error) {
	name := v.PersistentVolumeClaim.ClaimName
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: name, FSType: "ext4", VolumeAttributes: map[string]string{"kind": "fast"}}
	s := volume.Source{
		Volume: v, PersistentVolume: pv, Claim: volume.Claim{Namespace: pod.Namespace, Name: name}, ReadOnly: v.PersistentVolumeClaim.ReadOnly,
		Attached: true, AttachmentID: "csi-attachment", PublishContext: map[string]string{"device": "/dev/x"}, ClaimSize: 1 << 30,
	}
	if c.change != nil {
		c.change(&s)
	}
	return s, nil
}

func (c *cluster) CSIDriver(context.Context, string) (*storagev1.CSIDriver, error) {
	if c.object == nil {
		return nil, notFound{}
	}
	return c.object, nil
}

type notFound struct{}

func (notFound) Error() string  { return "not found" }
func (notFound) NotFound() bool { return true }

func (c *cluster) Secret(_ context.Context, _ types.UID, namespace, name string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"of": []byte(namespace + "/" + name)}}, nil
}

func (c *cluster) Token(_ context.Context, req csi.TokenRequest) (csi.Token, error) {
	return csi.Token{Value: req.ServiceAccount + "@" + req.Audience, Expiration: time.Unix(1e9, 0).UTC()}, nil
}

func pod(uid string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-" + uid, UID: types.UID(uid)}}
	p.Spec.ServiceAccountName = "default"
	for _, claim := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	return p
}

func manager(t testing.TB, root string, c *cluster, p *csi.Plugin) *volume.Manager {
	t.Helper()
	m, err := volume.New(volume.Config{RootDir: root, Claims: c}, []volume.Plugin{p}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parts(c *cluster) csi.Parts { return csi.Parts{Drivers: c, Secrets: c, Tokens: c} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mount(t testing.TB, m *volume.Manager, pod *corev1.Pod, name string) string {
	t.Helper()
	path, err := m.Mount(t.Context(), pod, name)
	must(t, err)
	return path
}

func readJSON(t *testing.T, path string) (got map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, json.Unmarshal(text, &got))
	return got
}

const sha = "b9f6da279ec59af95d121d1e1e502ecf056504e267f2f7dfc747ebd0f3f74298" // of "vol"

// Two pods share what is staged; the last one to go unstages it. On the disk all
// is as the stock kubelet has it.
func TestTwoPodsShareAVolume(t *testing.T) {
	d, socket := startDriver(t, allCaps, "vol")
	root, c := t.TempDir(), &cluster{}
	p := newPlugin(t, root, socket, parts(c))
	m := manager(t, root, c, p)
	a, b := pod("a", "vol"), pod("b", "vol")
	path := mount(t, m, a, "vol")
	if path != filepath.Join(root, "pods/a/volumes/kubernetes.io~csi/pv-vol/mount") {
		t.Errorf("at %s", path)
	}
	if text, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(text) != "vol" {
		t.Errorf("read %q, %v", text, err)
	}
	mount(t, m, b, "vol")
	mount(t, m, b, "vol")
	d.wantCalls(t, "Stage vol", "Publish vol", "Publish vol")

	stage := filepath.Join(root, "plugins/kubernetes.io/csi", driverName, sha)
	got := readJSON(t, filepath.Join(stage, "vol_data.json"))
	if got["driverName"] != driverName || got["volumeHandle"] != "vol" {
		t.Errorf("staged: %v", got)
	}
	got = readJSON(t, filepath.Join(filepath.Dir(path), "vol_data.json"))
	for key, want := range map[string]string{
		"specVolID": "pv-vol", "volumeHandle": "vol", "driverName": driverName, "nodeName": "n1", "attachmentID": "csi-attachment", "volumeLifecycleMode": "Persistent",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	publish := last[*csipb.NodePublishVolumeRequest](d, "NodePublishVolume")
	if publish.GetStagingTargetPath() != filepath.Join(stage, "globalmount") || publish.GetPublishContext()["device"] != "/dev/x" ||
		publish.GetVolumeContext()["kind"] != "fast" || len(publish.GetVolumeContext()) != 1 || publish.GetVolumeCapability().GetMount().GetFsType() != "ext4" {
		t.Errorf("published with %v", publish)
	}
	if staged, err := p.Staged(); err != nil || len(staged) != 1 || staged[0].Handle != "vol" || !staged[0].Attached {
		t.Errorf("staged %+v, %v", staged, err)
	}

	m = manager(t, root, c, newPlugin(t, root, socket, parts(c))) // as after a restart
	mount(t, m, a, "vol")
	if mounted, err := m.Mounted(t.Context(), "a"); err != nil || !slices.Equal(mounted, []string{"vol"}) {
		t.Errorf("mounted %v, %v", mounted, err)
	}
	must(t, m.Unmount(t.Context(), "a", "vol"))
	d.wantCalls(t, "Unpublish vol")
	must(t, m.RemovePodDir(t.Context(), "b"))
	d.wantCalls(t, "Unpublish vol", "Unstage vol")
	must(t, m.RemovePodDir(t.Context(), "a"))
	wantGone(t, d, root)
}

// wantGone is the end of all volumes.
func wantGone(t *testing.T, d *strictDriver, root string) {
	t.Helper()
	d.clean()
	wantNoMounts(t, root)
	if left := tree(t, filepath.Join(root, "plugins/kubernetes.io/csi")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left := tree(t, filepath.Join(root, "pods")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func asBlock(s *volume.Source) {
	block := corev1.PersistentVolumeBlock
	s.PersistentVolume.Spec.VolumeMode = &block
}

func TestBlockVolume(t *testing.T) {
	d, socket := startDriver(t, allCaps, "vol")
	root, c := t.TempDir(), &cluster{change: asBlock}
	m := manager(t, root, c, newPlugin(t, root, socket, parts(c)))
	base := filepath.Join(root, "plugins/kubernetes.io/csi/volumeDevices")
	for _, uid := range []string{"a", "b"} {
		path := mount(t, m, pod(uid, "vol"), "vol")
		if path != filepath.Join(base, "publish/pv-vol", uid) {
			t.Errorf("at %s", path)
		}
		if to, err := os.Readlink(filepath.Join(root, "pods", uid, "volumeDevices/kubernetes.io~csi/pv-vol")); err != nil || to != path {
			t.Errorf("the link leads to %q, %v", to, err)
		}
	}
	if got := readJSON(t, filepath.Join(base, "pv-vol/data/vol_data.json")); got["specVolID"] != "pv-vol" || got["volumeHandle"] != "vol" {
		t.Errorf("record %v", got)
	}
	stage := last[*csipb.NodeStageVolumeRequest](d, "NodeStageVolume")
	if stage.GetStagingTargetPath() != filepath.Join(base, "staging/pv-vol") || stage.GetVolumeCapability().GetBlock() == nil {
		t.Errorf("staged with %v", stage)
	}
	d.wantCalls(t, "Stage vol", "Publish vol", "Publish vol")

	m = manager(t, root, c, newPlugin(t, root, socket, parts(c)))
	if mounted, err := m.Mounted(t.Context(), "a"); err != nil || !slices.Equal(mounted, []string{"vol"}) {
		t.Errorf("mounted %v, %v", mounted, err)
	}
	must(t, m.RemovePodDir(t.Context(), "a"))
	must(t, m.RemovePodDir(t.Context(), "b"))
	d.wantCalls(t, "Unpublish vol", "Unpublish vol", "Unstage vol")
	wantGone(t, d, root)
}

// An inline volume is the pod's own: it is not staged, and the driver hears of
// the pod as its object asks for.
func TestInlineVolume(t *testing.T) {
	d, socket := startDriver(t, allCaps)
	yes := true
	hour := int64(3600)
	c := &cluster{}
	root := t.TempDir()
	m := manager(t, root, c, newPlugin(t, root, socket, parts(c)))
	a := pod("a")
	a.Spec.Volumes = []corev1.Volume{{Name: "in", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: driverName, NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}, VolumeAttributes: map[string]string{"k": "v"}}}}}
	_, err := m.Mount(t.Context(), a, "in")
	if err == nil || !strings.Contains(err.Error(), `volume mode "Ephemeral" not supported by driver disk.example (no CSIDriver object)`) {
		t.Errorf("error %v", err)
	}
	c.object = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{
		PodInfoOnMount: &yes, VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral},
		TokenRequests: []storagev1.TokenRequest{{Audience: "vault", ExpirationSeconds: &hour}},
	}}
	must(t, os.MkdirAll(d.source(inlineHandle("a", "in")), 0o755))
	mount(t, m, a, "in")
	publish := last[*csipb.NodePublishVolumeRequest](d, "NodePublishVolume")
	handle := publish.GetVolumeId()
	if handle != inlineHandle("a", "in") || publish.GetStagingTargetPath() != "" || publish.GetSecrets()["of"] != "ns/s" {
		t.Errorf("published with %v", publish)
	}
	for key, want := range map[string]string{
		"k": "v", "csi.storage.k8s.io/pod.name": "pod-a", "csi.storage.k8s.io/pod.namespace": "ns", "csi.storage.k8s.io/pod.uid": "a",
		"csi.storage.k8s.io/serviceAccount.name": "default", "csi.storage.k8s.io/ephemeral": "true",
		"csi.storage.k8s.io/serviceAccount.tokens": `{"vault":{"token":"default@vault","expirationTimestamp":"2001-09-09T01:46:40Z"}}`,
	} {
		if got := publish.GetVolumeContext()[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := readJSON(t, filepath.Join(root, "pods/a/volumes/kubernetes.io~csi/in/vol_data.json")); got["volumeLifecycleMode"] != "Ephemeral" {
		t.Errorf("record %v", got)
	}
	d.wantCalls(t, "Publish "+handle)
	must(t, m.RemovePodDir(t.Context(), "a"))
	d.wantCalls(t, "Unpublish "+handle)
	wantGone(t, d, root)

	c.object.Spec.ServiceAccountTokenInSecrets = &yes
	mount(t, m, a, "in")
	publish = last[*csipb.NodePublishVolumeRequest](d, "NodePublishVolume")
	if publish.GetSecrets()["csi.storage.k8s.io/serviceAccount.tokens"] == "" || publish.GetVolumeContext()["csi.storage.k8s.io/serviceAccount.tokens"] != "" {
		t.Errorf("tokens are not among the secrets: %v", publish)
	}
	must(t, m.RemovePodDir(t.Context(), "a"))

	_, err = m.Mount(t.Context(), pod("b", "vol"), "vol")
	if err == nil || !strings.Contains(err.Error(), `volume mode "Persistent" not supported by driver disk.example (only supports ["Ephemeral"])`) {
		t.Errorf("error %v", err)
	}
}

// A pod is told that its driver is missing, and woken when it comes.
func TestDriverComesLater(t *testing.T) {
	d, socket := startDriver(t, allCaps, "vol")
	root, c := t.TempDir(), &cluster{}
	woken := make(chan string, 1)
	ps := parts(c)
	ps.Wake = func(uid string) { woken <- uid }
	p := newPlugin(t, root, "", ps)
	m := manager(t, root, c, p)
	_, err := m.Mount(t.Context(), pod("a", "vol"), "vol")
	if err == nil || !strings.Contains(err.Error(), "driver name disk.example not found in the list of registered CSI drivers") ||
		reasoned.RetryAfter(err, 0) == 0 || reasoned.Fatal(err) || reasoned.Reason(err, "") != "FailedMount" {
		t.Fatalf("error %v", err)
	}
	changed := p.Changed()
	register(t, p, socket)
	<-changed
	if uid := <-woken; uid != "a" {
		t.Errorf("woke %s", uid)
	}
	got := p.Registered()
	if len(got) != 1 || got[0].NodeID != "id-of-n1" || got[0].MaxVolumes != 8 || got[0].Topology["disk.example/zone"] != "a" || !got[0].Capabilities.Stage || !got[0].Capabilities.VolumeCondition {
		t.Errorf("registered %+v", got)
	}
	mount(t, m, pod("a", "vol"), "vol")
	p.Unregister(csi.Registration{Name: driverName, Socket: "reg"})
	if err := m.Unmount(t.Context(), "a", "vol"); err == nil || reasoned.RetryAfter(err, 0) == 0 {
		t.Errorf("unmounted without a driver: %v", err)
	}
	register(t, p, socket)
	must(t, m.RemovePodDir(t.Context(), "a"))
	wantGone(t, d, root)
	for name, r := range map[string]csi.Registration{
		"old version": {Name: driverName, Endpoint: socket, Versions: []string{"0.3.0"}}, "bad name": {Name: "../x", Versions: []string{"1.0"}},
	} {
		if err := p.Register(t.Context(), r); err == nil {
			t.Errorf("%s: registered", name)
		}
	}
}

// What an agent left staged is unstaged by the next one, once its driver is
// there; what a pod uses is not.
func TestLeftoversAreUnstaged(t *testing.T) {
	d, socket := startDriver(t, allCaps, "left", "used")
	root, c := t.TempDir(), &cluster{}
	m := manager(t, root, c, newPlugin(t, root, socket, parts(c)))
	mount(t, m, pod("a", "left"), "left")
	mount(t, m, pod("b", "used"), "used")
	d.mu.Lock()
	d.meet = func(_ context.Context, method string, _ bool) error {
		if method == "NodeUnstageVolume" {
			return status.Error(codes.Internal, "no")
		}
		return nil
	}
	d.mu.Unlock()
	must(t, m.RemovePodDir(t.Context(), "a")) // the pod's end does not wait
	d.took()

	unstaged := make(chan bool, 10)
	d.mu.Lock()
	d.meet = func(_ context.Context, method string, after bool) error {
		if method == "NodeUnstageVolume" && after {
			unstaged <- true
		}
		return nil
	}
	d.mu.Unlock()
	p := newPlugin(t, root, "", parts(c))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	register(t, p, socket)
	<-unstaged
	m = manager(t, root, c, p)
	must(t, m.RemovePodDir(t.Context(), "b"))
	<-unstaged
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	d.wantCalls(t, "Unstage left", "Unpublish used", "Unstage used")
	wantGone(t, d, root)
}

// A volume whose claim is smaller is grown once it is published, once on this
// node; later it grows while it is used.
func TestExpand(t *testing.T) {
	for name, tc := range map[string]struct {
		caps []csipb.NodeServiceCapability_RPC_Type
		want []string
	}{
		"staged":     {allCaps, []string{"Stage vol", "Publish vol", "Expand vol", "Publish vol", "Expand vol"}},
		"not staged": {allCaps[1:], []string{"Publish vol", "Expand vol", "Publish vol", "Expand vol", "Expand vol"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, socket := startDriver(t, tc.caps, "vol")
			root := t.TempDir()
			c := &cluster{change: func(s *volume.Source) {
				s.ClaimSize = 1 << 20
				s.PersistentVolume.Spec.CSI.NodeExpandSecretRef = &corev1.SecretReference{Namespace: "sys", Name: "grow"}
			}}
			var told []csi.Expansion
			p := newPlugin(t, root, socket, parts(c), func(cfg *csi.Config) { cfg.Observer.Expanded = func(e csi.Expansion) { told = append(told, e) } })
			m := manager(t, root, c, p)
			mount(t, m, pod("a", "vol"), "vol")
			mount(t, m, pod("b", "vol"), "vol")
			s, err := c.Claimed(t.Context(), pod("a"), pod("a", "vol").Spec.Volumes[0])
			must(t, err)
			req := csi.ExpandRequest{VolumeRequest: csi.VolumeRequest{UID: "a", Source: s}, Size: 2 << 30}
			for range 2 { // the driver is called once
				if got, err := p.Expand(t.Context(), req); err != nil || got.Size != 2<<30 {
					t.Errorf("%+v, %v", got, err)
				}
			}
			if got, err := p.SizeOf(req.VolumeRequest); err != nil || got != 2<<30 {
				t.Errorf("size %d, %v", got, err)
			}
			d.wantCalls(t, tc.want...)
			if len(told) < 2 || !told[0].Mounting || told[0].Size != 1<<30 || told[0].UID != "a" || told[len(told)-1].Mounting || told[len(told)-1].Size != 2<<30 {
				t.Errorf("told %+v", told)
			}
			if got := last[*csipb.NodeExpandVolumeRequest](d, "NodeExpandVolume"); got.GetSecrets()["of"] != "sys/grow" || !strings.HasSuffix(got.GetVolumePath(), "/mount") {
				t.Errorf("expanded with %v", got)
			}
			must(t, m.RemovePodDir(t.Context(), "a"))
			if _, err := p.Expand(t.Context(), req); err == nil {
				t.Error("a volume that is not there was grown")
			}
			must(t, m.RemovePodDir(t.Context(), "b"))
			wantGone(t, d, root)
		})
	}
}

// Stats give way to a mount, and wait for none.
func TestStatsAndHealth(t *testing.T) {
	d, socket := startDriver(t, allCaps, "vol")
	root, c := t.TempDir(), &cluster{}
	p := newPlugin(t, root, socket, parts(c), func(cfg *csi.Config) { cfg.VolumeCondition = true })
	m := manager(t, root, c, p)
	mount(t, m, pod("a", "vol"), "vol")
	s, err := c.Claimed(t.Context(), pod("a"), pod("a", "vol").Spec.Volumes[0])
	must(t, err)
	req := csi.VolumeRequest{UID: "a", Source: s}
	got, err := p.Stats(t.Context(), req)
	if err != nil || *got.Bytes != (csi.Usage{Total: 100, Used: 30, Available: 70}) || *got.Inodes != (csi.Usage{Total: 10, Used: 3, Available: 7}) ||
		*got.Condition != (csi.Condition{Abnormal: true, Message: "bad"}) || got.Driver != driverName {
		t.Errorf("%+v, %v", got, err)
	}
	health, err := p.Health(t.Context(), req)
	if err != nil || !slices.Equal(health, []csi.HealthEntry{{Status: "Degraded", Reason: "SlowPath", Message: "one path of two"}}) {
		t.Errorf("%+v, %v", health, err)
	}
	backend, err := p.StorageHealth(t.Context(), driverName)
	if err != nil || !slices.Equal(backend, []csi.BackendHealth{{Status: "StorageDegraded", Reason: "Slow"}}) {
		t.Errorf("%+v, %v", backend, err)
	}

	hangs, cancelled := make(chan bool), make(chan error, 1)
	d.mu.Lock()
	d.meet = func(ctx context.Context, method string, after bool) error {
		if method == "NodeGetVolumeStats" && !after {
			hangs <- true
			<-ctx.Done()
		}
		return nil
	}
	d.mu.Unlock()
	go func() {
		_, err := p.Stats(t.Context(), req)
		cancelled <- err
	}()
	<-hangs
	if _, err := p.Stats(t.Context(), req); !errors.Is(err, csi.ErrBusy) {
		t.Errorf("error %v", err)
	}
	// The driver ends its work only after the client has left: CSI lets us wait for no more.
	d.mu.Lock()
	delete(d.inFlight, "vol")
	d.mu.Unlock()
	mount(t, m, pod("b", "vol"), "vol")
	if err := <-cancelled; status.Code(err) != codes.Canceled {
		t.Errorf("error %v", err)
	}
	must(t, m.RemovePodDir(t.Context(), "a"))
	must(t, m.RemovePodDir(t.Context(), "b"))
	wantGone(t, d, root)
}

// A driver that asks for it is called again and again, with fresh tokens; when
// that fails, the volume stays as it is.
func TestRepublish(t *testing.T) {
	d, socket := startDriver(t, allCaps, "vol")
	yes := true
	root, c := t.TempDir(), &cluster{object: &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{RequiresRepublish: &yes}}}
	m := manager(t, root, c, newPlugin(t, root, socket, parts(c)))
	a := pod("a", "vol")
	mount(t, m, a, "vol")
	result, err := m.Refresh(t.Context(), a)
	if err != nil || result.Followed != 1 || time.Until(result.Next) > time.Minute || time.Until(result.Next) < 50*time.Second {
		t.Errorf("%+v, %v", result, err)
	}
	if publish := last[*csipb.NodePublishVolumeRequest](d, "NodePublishVolume"); publish.GetPublishContext()["device"] != "/dev/x" {
		t.Errorf("published again with %v", publish)
	}
	d.wantCalls(t, "Stage vol", "Publish vol", "Publish vol")
	d.mu.Lock()
	d.meet = func(context.Context, string, bool) error { return status.Error(codes.Internal, "no") }
	d.mu.Unlock()
	if _, err := m.Refresh(t.Context(), a); err == nil {
		t.Error("no error")
	}
	if mounted, err := m.Mounted(t.Context(), "a"); err != nil || len(mounted) != 1 {
		t.Errorf("mounted %v, %v", mounted, err)
	}
	d.mu.Lock()
	d.meet = nil
	d.mu.Unlock()
	must(t, m.RemovePodDir(t.Context(), "a"))
	wantGone(t, d, root)
}

// What the stock kubelet mounted is taken over: it is mounted, used, and taken
// away through the driver.
func TestStockKubeletsVolumes(t *testing.T) {
	for name, change := range map[string]func(*volume.Source){"mount": nil, "block": asBlock} {
		t.Run(name, func(t *testing.T) {
			d, socket := startDriver(t, allCaps, "vol")
			root, c := t.TempDir(), &cluster{change: change}
			m := manager(t, root, c, newPlugin(t, root, socket, parts(c)))
			mount(t, m, pod("a", "vol"), "vol")
			d.took()
			// As that one would have left it: no keys and no files of ours.
			must(t, os.RemoveAll(filepath.Join(root, "pods/a/plugins")))
			for _, glob := range []string{"plugins/kubernetes.io/csi/*/*/vol_data.json", "plugins/kubernetes.io/csi/*/*/data/vol_data.json", "pods/*/volumes/*/*/vol_data.json"} {
				paths, err := filepath.Glob(filepath.Join(root, glob))
				must(t, err)
				for _, path := range paths {
					r := readJSON(t, path)
					for key := range r {
						if strings.HasPrefix(key, "nodekit.dev/") {
							delete(r, key)
						}
					}
					text, err := json.Marshal(r)
					must(t, err)
					must(t, os.WriteFile(path, text, 0o600))
				}
			}
			m = manager(t, root, c, newPlugin(t, root, socket, parts(c)))
			if mounted, err := m.Mounted(t.Context(), "a"); err != nil || !slices.Equal(mounted, []string{"vol"}) {
				t.Fatalf("mounted %v, %v", mounted, err)
			}
			mount(t, m, pod("b", "vol"), "vol")
			must(t, m.RemovePodDir(t.Context(), "b"))
			d.wantCalls(t, "Stage vol", "Publish vol", "Unpublish vol") // staged again, which is idempotent; not unstaged
			must(t, m.RemovePodDir(t.Context(), "a"))
			d.wantCalls(t, "Unpublish vol", "Unstage vol")
			wantGone(t, d, root)
		})
	}
}
