package plugins_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

func TestMain(m *testing.M) { os.Exit(beneathtest.Main(m)) }

// notThere is how node/objects says it.
type notThere string

func (n notThere) Error() string  { return string(n) + " not found" }
func (n notThere) NotFound() bool { return true }

// cluster is what all getters find.
type cluster struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	bundles    []bundle
	err        error // instead of everything
	asked      plugins.TokenRequest
}

func (c *cluster) ConfigMap(_ context.Context, _ types.UID, namespace, name string) (*corev1.ConfigMap, error) {
	if c.err != nil {
		return nil, c.err
	}
	if m := c.configMaps[namespace+"/"+name]; m != nil {
		return m, nil
	}
	return nil, notThere(`configmap "` + name + `"`)
}

func (c *cluster) Secret(_ context.Context, _ types.UID, namespace, name string) (*corev1.Secret, error) {
	if c.err != nil {
		return nil, c.err
	}
	if s := c.secrets[namespace+"/"+name]; s != nil {
		return s, nil
	}
	// A vendor's getter may hand on what the API server said.
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secret"}, name)
}

func (c *cluster) ClusterTrustBundle(_ context.Context, _ types.UID, name string) (string, error) {
	for _, b := range c.bundles {
		if b.name == name {
			return b.certificates, nil
		}
	}
	return "", notThere(`clustertrustbundle.certificates.k8s.io "` + name + `"`)
}

func (c *cluster) ClusterTrustBundles(_ context.Context, _ types.UID, signer string, _ *metav1.LabelSelector) (list []string, err error) {
	for _, b := range c.bundles {
		if b.signer == signer {
			list = append(list, b.certificates)
		}
	}
	return list, c.err
}

// bundle is a ClusterTrustBundle.
type bundle struct{ name, signer, certificates string }

func (c *cluster) Token(_ context.Context, req plugins.TokenRequest) (plugins.Token, error) {
	c.asked = req
	return plugins.Token{Value: "token for " + req.ServiceAccount, RefreshAt: time.Unix(1e9, 0)}, c.err
}

func (c *cluster) PodCertificate(_ context.Context, _ *corev1.Pod, volume string, source int) (key, chain []byte, err error) {
	if c.err != nil {
		return nil, nil, c.err
	}
	return []byte("KEY" + volume), []byte{'0' + byte(source)}, nil
}

func newCluster() *cluster {
	return &cluster{
		configMaps: map[string]*corev1.ConfigMap{"ns/conf": {
			Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"bin": {0, 255}},
		}},
		secrets: map[string]*corev1.Secret{"ns/db": {Data: map[string][]byte{"user": []byte("root"), "pass": []byte("x")}}},
	}
}

func (c *cluster) sources() plugins.Sources {
	return plugins.Sources{
		ConfigMaps: c, Secrets: c, TrustBundles: c, Tokens: c, PodCertificates: c,
		Allocatable: func() corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse("4")} },
	}
}

// bed is one volume of one pod.
type bed struct {
	t      *testing.T
	plugin volume.Plugin
	pod    *corev1.Pod
	vol    corev1.Volume
	root   string
}

func newBed(t *testing.T, sources plugins.Sources, source corev1.VolumeSource) *bed {
	t.Helper()
	b := &bed{t: t, root: t.TempDir(), vol: corev1.Volume{Name: "v", VolumeSource: source}, pod: &corev1.Pod{}}
	b.pod.Namespace, b.pod.Name, b.pod.UID = "ns", "pod", "u1"
	b.pod.Spec.ServiceAccountName = "robot"
	b.pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	for _, p := range plugins.FromObjects(sources) {
		if p.Supports(volume.Source{Volume: b.vol}) {
			b.plugin = p
		}
	}
	if b.plugin == nil {
		t.Fatal("no plugin supports the volume")
	}
	if source.ConfigMap == nil {
		beneathtest.NeedMounts(t)
		t.Cleanup(func() { _ = unix.Unmount(b.dir(), unix.MNT_DETACH) })
	}
	return b
}

func (b *bed) dir() string { return filepath.Join(b.root, "volumes", "v") }

func (b *bed) mount() (volume.MountResult, error) {
	return b.plugin.Mount(b.t.Context(), volume.MountRequest{Pod: b.pod, Source: volume.Source{Volume: b.vol}, Dir: b.dir(), MetaDir: filepath.Join(b.root, "meta")})
}

func (b *bed) mustMount() volume.MountResult {
	b.t.Helper()
	result, err := b.mount()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *bed) mounted() bool {
	b.t.Helper()
	result, err := b.plugin.Mounted(b.t.Context(), volume.MountedRequest{Dir: b.dir(), Source: volume.Source{Volume: corev1.Volume{Name: "v"}}})
	if err != nil {
		b.t.Fatal(err)
	}
	if result.Mounted && (!result.ReadOnly || !result.Follows || result.HostPath != b.dir()) {
		b.t.Errorf("%+v", result)
	}
	return result.Mounted
}

func (b *bed) unmount() error {
	points, err := volume.HostMounter{}.MountPoints(b.dir())
	if err != nil {
		return err
	}
	return b.plugin.Unmount(b.t.Context(), volume.UnmountRequest{Dir: b.dir(), Mounts: points})
}

// files reads the volume as "name:mode=content".
func (b *bed) files() string {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir())
	if err != nil {
		b.t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(b.dir(), entry.Name()))
		if err != nil {
			b.t.Fatal(err)
		}
		_ = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, _ := d.Info()
			data, err := os.ReadFile(path)
			list = append(list, strings.Replace(path, real, entry.Name(), 1)+":"+info.Mode().String()[1:]+"="+string(data))
			return err
		})
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (b *bed) want(want string) {
	b.t.Helper()
	if got := b.files(); got != want {
		b.t.Errorf("got  %q\nwant %q", got, want)
	}
}

// onTmpfs says whether the volume is in memory.
func (b *bed) onTmpfs() bool {
	b.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(b.dir(), &st); err != nil {
		b.t.Fatal(err)
	}
	points, err := volume.HostMounter{}.MountPoints(b.dir())
	if err != nil {
		b.t.Fatal(err)
	}
	return st.Type == unix.TMPFS_MAGIC && len(points) == 1
}

func p[T any](v T) *T { return &v }

func configMapSource(s corev1.ConfigMapVolumeSource) corev1.VolumeSource {
	s.Name = "conf"
	return corev1.VolumeSource{ConfigMap: &s}
}

func secretSource(s corev1.SecretVolumeSource) corev1.VolumeSource {
	s.SecretName = "db"
	return corev1.VolumeSource{Secret: &s}
}

func projectedSource(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
}
