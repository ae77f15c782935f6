package plugins_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/beneath/beneathtest"
	"nodekit.dev/volume/plugins"
)

func TestWhatIsInAVolume(t *testing.T) {
	conf := corev1.LocalObjectReference{Name: "conf"}
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		want   string
	}{
		"configMap": {configMapSource(corev1.ConfigMapVolumeSource{}), "a:rw-r--r--=1 b:rw-r--r--=2 bin:rw-r--r--=\x00\xff"},
		"its items": {configMapSource(corev1.ConfigMapVolumeSource{
			DefaultMode: p(int32(0o440)), Items: []corev1.KeyToPath{{Key: "a", Path: "x/y/a"}, {Key: "bin", Path: "b", Mode: p(int32(0o700))}},
		}), "b:rwx------=\x00\xff x/y/a:r--r-----=1"},
		"optional key": {configMapSource(corev1.ConfigMapVolumeSource{
			Optional: p(true), Items: []corev1.KeyToPath{{Key: "a", Path: "a"}, {Key: "no", Path: "no"}},
		}), "a:rw-r--r--=1"},
		"secret":    {secretSource(corev1.SecretVolumeSource{DefaultMode: p(int32(0o400))}), "pass:r--------=x user:r--------=root"},
		"optional":  {corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none", Optional: p(true)}}, ""},
		"optional2": {corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: p(true)}}, ""},
		"downwardAPI": {corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			{Path: "res/cpu", Mode: p(int32(0o600)), ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "app", Resource: "limits.cpu"}},
		}}}, "labels:rw-r--r--=app=\"web\" res/cpu:rw-------=4"},
		"projected, as every pod has it": {projectedSource(
			corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: p(int64(3607))}},
			corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: conf, Items: []corev1.KeyToPath{{Key: "a", Path: "ca.crt"}}}},
			corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
			}}},
		), "ca.crt:rw-r--r--=1 namespace:rw-r--r--=ns token:rw-r--r--=token for robot"},
		"the later source wins": {projectedSource(
			corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: conf, Items: []corev1.KeyToPath{{Key: "a", Path: "f"}}}},
			corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Items: []corev1.KeyToPath{{Key: "user", Path: "f"}}}},
		), "f:rw-r--r--=root"},
		"pod certificate": {projectedSource(
			corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: conf, Items: []corev1.KeyToPath{{Key: "a", Path: "a"}}}},
			corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{CredentialBundlePath: "bundle", KeyPath: "key", CertificateChainPath: "chain"}},
		), "a:rw-r--r--=1 bundle:rw-r--r--=KEYv1 chain:rw-r--r--=1 key:rw-r--r--=KEYv"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, newCluster().sources(), tc.source)
			b.pod.Labels = map[string]string{"app": "web"}
			if b.mounted() {
				t.Error("mounted before the mount")
			}
			for range 2 {
				if result := b.mustMount(); result.HostPath != b.dir() {
					t.Errorf("path %s", result.HostPath)
				}
				b.want(tc.want)
			}
			if !b.mounted() {
				t.Error("not mounted after the mount")
			}
			if inMemory := tc.source.ConfigMap == nil; inMemory && !b.onTmpfs() {
				t.Error("not on a tmpfs of its own")
			}
			for range 2 {
				if err := b.unmount(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Lstat(b.dir()); !errors.Is(err, fs.ErrNotExist) || b.mounted() {
				t.Errorf("left over: %v", err)
			}
		})
	}
}

func TestMountErrors(t *testing.T) {
	away := errors.New("the API server is away")
	broken := newCluster()
	broken.err = away
	conf := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}
	for want, tc := range map[string]struct {
		sources plugins.Sources
		source  corev1.VolumeSource
	}{
		`configmap "none" not found`:                      {newCluster().sources(), corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}}},
		`secret "none" not found`:                         {newCluster().sources(), corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}}},
		"configmap references non-existent config key: z": {newCluster().sources(), configMapSource(corev1.ConfigMapVolumeSource{Items: []corev1.KeyToPath{{Key: "z", Path: "z"}}})},
		"references non-existent secret key: z":           {newCluster().sources(), secretSource(corev1.SecretVolumeSource{Items: []corev1.KeyToPath{{Key: "z", Path: "z"}}})},
		// Not known to be missing: not optional.
		"the API server is away":                           {broken.sources(), configMapSource(corev1.ConfigMapVolumeSource{Optional: p(true)})},
		"invalid path: must not contain '..': ../../x":     {newCluster().sources(), configMapSource(corev1.ConfigMapVolumeSource{Items: []corev1.KeyToPath{{Key: "a", Path: "../../x"}}})},
		"invalid path: must not start with '..': ..data/x": {newCluster().sources(), secretSource(corev1.SecretVolumeSource{Items: []corev1.KeyToPath{{Key: "user", Path: "..data/x"}}})},
		`[configmap "none" not found, container x not found]`: {newCluster().sources(), projectedSource(
			corev1.VolumeProjection{ConfigMap: conf},
			corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "c", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "x", Resource: "limits.cpu"},
			}}}})},
		"unsupported fieldPath: status.podIP": {newCluster().sources(), corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "ip", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}}},
		"this agent has no source of ConfigMaps": {plugins.Sources{}, configMapSource(corev1.ConfigMapVolumeSource{})},
		"this agent has no source of Secrets":    {plugins.Sources{}, secretSource(corev1.SecretVolumeSource{})},
		"this agent has no API server to issue service account tokens": {plugins.Sources{},
			projectedSource(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}})},
		"this agent has no API server to request pod certificates from": {plugins.Sources{},
			projectedSource(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{KeyPath: "k"}})},
		"this agent has no source of ClusterTrustBundles": {plugins.Sources{},
			projectedSource(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "c", Name: p("x")}})},
	} {
		t.Run(want, func(t *testing.T) {
			b := newBed(t, tc.sources, tc.source)
			if _, err := b.mount(); err == nil || err.Error() != want {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(b.dir()); err == nil || b.mounted() {
				t.Error("made a directory for what can not be filled")
			}
		})
	}
}

func TestContentFollowsAndOldContentStays(t *testing.T) {
	c := newCluster()
	b := newBed(t, c.sources(), configMapSource(corev1.ConfigMapVolumeSource{}))
	b.mustMount()
	c.configMaps["ns/conf"] = &corev1.ConfigMap{Data: map[string]string{"b": "3", "new": "4"}}
	b.mustMount()
	b.want("b:rw-r--r--=3 new:rw-r--r--=4")
	for _, breakIt := range []func(){
		func() { c.configMaps["ns/conf"] = &corev1.ConfigMap{Data: map[string]string{"..data": "evil"}} },
		func() { delete(c.configMaps, "ns/conf") },
		func() { c.err = errors.New("away") },
	} {
		breakIt()
		if _, err := b.mount(); err == nil {
			t.Error("no error")
		}
		b.want("b:rw-r--r--=3 new:rw-r--r--=4")
		if !b.mounted() {
			t.Error("not mounted any more")
		}
	}
}

// After a reboot the tmpfs is gone, and the directory is empty.
func TestMemoryIsFilledAnewAfterAReboot(t *testing.T) {
	b := newBed(t, newCluster().sources(), secretSource(corev1.SecretVolumeSource{}))
	b.mustMount()
	if err := unix.Unmount(b.dir(), 0); err != nil {
		t.Fatal(err)
	}
	if b.mounted() {
		t.Error("mounted without its tmpfs")
	}
	b.mustMount()
	if !b.onTmpfs() {
		t.Error("not on a tmpfs")
	}
	b.want("pass:rw-r--r--=x user:rw-r--r--=root")
}

func TestFSGroupAndUser(t *testing.T) {
	token := projectedSource(
		corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Items: []corev1.KeyToPath{{Key: "user", Path: "user"}}}},
	)
	for name, tc := range map[string]struct {
		pod, app  *int64 // runAsUser
		group     *int64
		tokenMode fs.FileMode
		owner     [2]uint32 // of the token
		userMode  fs.FileMode
		dir       fs.FileMode
	}{
		"plain":          {nil, nil, nil, 0o644, [2]uint32{0, 0}, 0o644, fs.ModeDir | fs.ModeSticky | 0o777},
		"group":          {nil, nil, p(int64(99)), 0o640, [2]uint32{0, 99}, 0o644, fs.ModeDir | fs.ModeSticky | fs.ModeSetgid | 0o777},
		"user":           {p(int64(7)), nil, nil, 0o600, [2]uint32{7, 0}, 0o644, fs.ModeDir | fs.ModeSticky | 0o777},
		"both":           {p(int64(7)), p(int64(8)), p(int64(99)), 0o640, [2]uint32{8, 99}, 0o644, fs.ModeDir | fs.ModeSticky | fs.ModeSetgid | 0o777},
		"only container": {nil, p(int64(8)), nil, 0o600, [2]uint32{8, 0}, 0o644, fs.ModeDir | fs.ModeSticky | 0o777},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, newCluster().sources(), token)
			b.pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: tc.pod, FSGroup: tc.group}
			b.pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: tc.app}
			b.mustMount()
			var st unix.Stat_t
			info, err := os.Stat(filepath.Join(b.dir(), "token"))
			if err := errors.Join(err, unix.Stat(filepath.Join(b.dir(), "token"), &st)); err != nil ||
				info.Mode() != tc.tokenMode || [2]uint32{st.Uid, st.Gid} != tc.owner {
				t.Errorf("token: %v %d:%d, %v", info.Mode(), st.Uid, st.Gid, err)
			}
			if info, err := os.Stat(filepath.Join(b.dir(), "user")); err != nil || info.Mode() != tc.userMode {
				t.Errorf("user: %v, %v", info, err)
			}
			if info, err := os.Stat(b.dir()); err != nil || info.Mode() != tc.dir {
				t.Errorf("directory: %v, %v", info.Mode(), err)
			}
		})
	}
	// Two containers that do not run as one user.
	b := newBed(t, newCluster().sources(), token)
	b.pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: p(int64(7))}
	b.pod.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	b.mustMount()
	if info, _ := os.Stat(filepath.Join(b.dir(), "token")); info.Mode() != 0o644 {
		t.Errorf("token of two users: %v", info.Mode())
	}
}

func TestTokenRequest(t *testing.T) {
	c := newCluster()
	b := newBed(t, c.sources(), projectedSource(corev1.VolumeProjection{
		ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "vault", ExpirationSeconds: p(int64(600))},
	}))
	if result := b.mustMount(); !result.RefreshAt.Equal(time.Unix(1e9, 0)) {
		t.Errorf("refresh at %v", result.RefreshAt)
	}
	want := plugins.TokenRequest{
		PodUID: "u1", PodName: "pod", Namespace: "ns", ServiceAccount: "robot", Audience: "vault", Expiration: 10 * time.Minute,
	}
	if c.asked != want {
		t.Errorf("asked %+v", c.asked)
	}
}

func TestTrustBundles(t *testing.T) {
	cert := func(text string) string {
		return "a comment\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"h": "v"}, Bytes: []byte(text)}))
	}
	plain := func(text string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
	}
	c := newCluster()
	for _, b := range [][3]string{{"one", "", cert("A")}, {"x1", "x.io/s", cert("C") + cert("B")}, {"x2", "x.io/s", cert("B") + cert("D")}} {
		c.bundles = append(c.bundles, bundle{b[0], b[1], b[2]})
	}
	for name, tc := range map[string]struct {
		source corev1.ClusterTrustBundleProjection
		want   string
		err    string
	}{
		"by name":   {source: corev1.ClusterTrustBundleProjection{Name: p("one")}, want: plain("A")},
		"by signer": {source: corev1.ClusterTrustBundleProjection{SignerName: p("x.io/s"), LabelSelector: &metav1.LabelSelector{}}, want: plain("B") + plain("C") + plain("D")},
		"missing": {source: corev1.ClusterTrustBundleProjection{Name: p("no")},
			err: `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "no" not found`},
		"optional":        {source: corev1.ClusterTrustBundleProjection{Name: p("no"), Optional: p(true)}},
		"no match":        {source: corev1.ClusterTrustBundleProjection{SignerName: p("y.io/s")}, err: "combination of signerName and labelSelector matched zero ClusterTrustBundles"},
		"optional signer": {source: corev1.ClusterTrustBundleProjection{SignerName: p("y.io/s"), Optional: p(true)}},
		"neither":         {err: "ClusterTrustBundle projection requires either name or signerName to be set"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.source.Path = "ca.pem"
			b := newBed(t, c.sources(), projectedSource(corev1.VolumeProjection{ClusterTrustBundle: &tc.source}))
			_, err := b.mount()
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			b.want("ca.pem:rw-r--r--=" + tc.want)
		})
	}
}

func TestUnmountFollowsNothingAndSparesWhatIsNotOurs(t *testing.T) {
	for _, source := range []corev1.VolumeSource{configMapSource(corev1.ConfigMapVolumeSource{}), secretSource(corev1.SecretVolumeSource{})} {
		b := newBed(t, newCluster().sources(), source)
		outside := filepath.Join(b.root, "outside")
		if err := os.MkdirAll(filepath.Join(outside, "keep"), 0o755); err != nil {
			t.Fatal(err)
		}
		b.mustMount()
		for _, name := range []string{"link", "..data2"} {
			if err := os.Symlink(outside, filepath.Join(b.dir(), name)); err != nil {
				t.Fatal(err)
			}
		}
		beneathtest.NeedMounts(t)
		point := filepath.Join(b.dir(), "point")
		if err := os.Mkdir(point, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(outside, point, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		var mount *beneath.MountError
		if err := b.unmount(); !errors.As(err, &mount) || mount.Path != point {
			t.Errorf("with a foreign mount: %v", err)
		}
		if err := unix.Unmount(point, 0); err != nil {
			t.Fatal(err)
		}
		if err := b.unmount(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(outside, "keep")); err != nil {
			t.Error(err)
		}
	}
}

// The directory itself may have been exchanged for a symlink.
func TestDirectoryThatIsASymlink(t *testing.T) {
	for _, source := range []corev1.VolumeSource{configMapSource(corev1.ConfigMapVolumeSource{}), secretSource(corev1.SecretVolumeSource{})} {
		b := newBed(t, newCluster().sources(), source)
		outside := filepath.Join(b.root, "outside")
		if err := errors.Join(os.Mkdir(outside, 0o755), os.MkdirAll(filepath.Dir(b.dir()), 0o755), os.Symlink(outside, b.dir())); err != nil {
			t.Fatal(err)
		}
		if _, err := b.mount(); err == nil {
			t.Error("mounted through a symlink")
		}
		if err := b.unmount(); err != nil {
			t.Error(err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Errorf("outside: %v, %v", entries, err)
		}
	}
}

func TestForeignFileSystemInTheWay(t *testing.T) {
	b := newBed(t, newCluster().sources(), secretSource(corev1.SecretVolumeSource{}))
	if err := os.MkdirAll(b.dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", b.dir(), "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := b.mount(); err == nil || !strings.Contains(err.Error(), "something else than a tmpfs is mounted on") {
		t.Errorf("%v", err)
	}
}

func TestTmpfsSize(t *testing.T) {
	c := newCluster()
	c.secrets["ns/db"].Data["big"] = make([]byte, 100<<10)
	sources := c.sources()
	sources.TmpfsSize = func(*corev1.Pod) int64 { return 64 << 10 }
	b := newBed(t, sources, secretSource(corev1.SecretVolumeSource{}))
	if _, err := b.mount(); !errors.Is(err, unix.ENOSPC) || b.mounted() {
		t.Errorf("%v", err)
	}
	delete(c.secrets["ns/db"].Data, "big")
	b.mustMount()
	b.want("pass:rw-r--r--=x user:rw-r--r--=root")
	if err := b.unmount(); err != nil {
		t.Error(err)
	}
}

// meeting is an API server that answers nobody until both have asked.
type meeting struct {
	*cluster
	both sync.WaitGroup
}

func (m *meeting) ConfigMap(ctx context.Context, uid types.UID, namespace, name string) (*corev1.ConfigMap, error) {
	m.both.Done()
	m.both.Wait()
	return m.cluster.ConfigMap(ctx, uid, namespace, name)
}

func (m *meeting) Token(ctx context.Context, req plugins.TokenRequest) (plugins.Token, error) {
	m.both.Done()
	m.both.Wait()
	return m.cluster.Token(ctx, req)
}

func TestSourcesAreAskedAtOnce(t *testing.T) {
	m := &meeting{cluster: newCluster()}
	m.both.Add(2)
	sources := m.sources()
	sources.ConfigMaps, sources.Tokens = m, m
	b := newBed(t, sources, projectedSource(
		corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}, Items: []corev1.KeyToPath{{Key: "a", Path: "ca.crt"}},
		}},
	))
	b.mustMount()
	b.want("ca.crt:rw-r--r--=1 token:rw-r--r--=token for robot")
}
