package environment

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/podactor"
)

// cluster is an Objects that keeps what it was asked for.
type cluster struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	services   map[string][]*corev1.Service
	err        error // of everything
	asked      []string
	hang       bool // services do not answer
}

type notFound string

func (e notFound) Error() string  { return string(e) + " not found" }
func (e notFound) NotFound() bool { return true }

func (c *cluster) ConfigMap(_ context.Context, uid types.UID, namespace, name string) (*corev1.ConfigMap, error) {
	c.asked = append(c.asked, "configmap "+string(uid)+"/"+namespace+"/"+name)
	if object := c.configMaps[name]; object != nil || c.err != nil {
		return object, c.err
	}
	return nil, notFound(name)
}

func (c *cluster) Secret(_ context.Context, uid types.UID, namespace, name string) (*corev1.Secret, error) {
	c.asked = append(c.asked, "secret "+string(uid)+"/"+namespace+"/"+name)
	if object := c.secrets[name]; object != nil || c.err != nil {
		return object, c.err
	}
	return nil, notFound(name)
}

func (c *cluster) Services(ctx context.Context, uid types.UID, namespace string) ([]*corev1.Service, error) {
	c.asked = append(c.asked, "services "+string(uid)+"/"+namespace)
	if c.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.services[namespace], c.err
}

func podWith(c corev1.Container) *corev1.Pod {
	c.Name = "c"
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
	pod.Namespace, pod.Name, pod.UID = "ns", "p", "u1"
	return pod
}

func fetch(t *testing.T, objects Objects, req podactor.EnvironmentRequest) (podactor.EnvironmentResult, error) {
	t.Helper()
	e, err := New(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	if req.Container == "" {
		req.Container = "c"
	}
	return e.Environment(t.Context(), req)
}

func ref(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

// TestEachObjectIsAskedForOnce, on behalf of the pod, in its namespace.
func TestEachObjectIsAskedForOnce(t *testing.T) {
	objects := &cluster{
		configMaps: map[string]*corev1.ConfigMap{"a": {}, "b": {}}, secrets: map[string]*corev1.Secret{"s": {}},
		services: map[string][]*corev1.Service{"ns": {{}, {}}, "default": {{}}},
	}
	container := corev1.Container{
		EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("a")}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("s")}},
		},
		Env: []corev1.EnvVar{
			{Name: "1", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("a")}}},
			{Name: "2", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("b")}}},
			{Name: "3", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("s")}}},
			{Name: "4", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("gone")}}},
			{Name: "5", Value: "own", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("unused")}}},
		},
	}
	got, err := fetch(t, objects, podactor.EnvironmentRequest{Pod: podWith(container)})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"configmap u1/ns/a", "configmap u1/ns/b", "secret u1/ns/s", "secret u1/ns/gone", "services u1/default", "services u1/ns",
	}
	if !slices.Equal(objects.asked, want) {
		t.Errorf("asked for %q, want %q", objects.asked, want)
	}
	if len(got.ConfigMaps) != 2 || len(got.Secrets) != 1 || got.Secrets["s"] == nil || len(got.Services) != 3 {
		t.Errorf("got %+v", got)
	}
	if len(objects.services["default"]) != 1 {
		t.Error("the getter's list was changed")
	}
}

func TestInitAndEphemeralContainers(t *testing.T) {
	pod := podWith(corev1.Container{})
	from := []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("a")}}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", EnvFrom: from}}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", EnvFrom: from}}}
	for _, name := range []string{"init", "debug"} {
		got, err := fetch(t, &cluster{configMaps: map[string]*corev1.ConfigMap{"a": {}}}, podactor.EnvironmentRequest{Pod: pod, Container: name})
		if err != nil || got.ConfigMaps["a"] == nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestServices(t *testing.T) {
	for name, tc := range map[string]struct {
		links     *bool
		namespace string
		want      []string
	}{
		"links":             {new(true), "ns", []string{"services u1/default", "services u1/ns"}},
		"no links":          {new(false), "ns", []string{"services u1/default"}},
		"default namespace": {nil, "default", []string{"services u1/default"}},
	} {
		objects := &cluster{}
		pod := podWith(corev1.Container{})
		pod.Namespace, pod.Spec.EnableServiceLinks = tc.namespace, tc.links
		if _, err := fetch(t, objects, podactor.EnvironmentRequest{Pod: pod}); err != nil || !slices.Equal(objects.asked, tc.want) {
			t.Errorf("%s: asked %q, %v", name, objects.asked, err)
		}
	}
}

// TestWhatCanNotBeAskedFor is waited for, but by static pods not for services.
func TestWhatCanNotBeAskedFor(t *testing.T) {
	away := &cluster{err: errors.New("no route to the API server")}
	_, err := fetch(t, away, podactor.EnvironmentRequest{Pod: podWith(corev1.Container{})})
	if err == nil || !strings.HasPrefix(err.Error(), "services have not yet been read at least once, cannot construct envvars") ||
		reasoned.Reason(err, "") != "CreateContainerConfigError" || reasoned.Fatal(err) {
		t.Errorf("error %v", err)
	}
	if _, err := fetch(t, away, podactor.EnvironmentRequest{Pod: podWith(corev1.Container{}), Static: true}); err != nil {
		t.Errorf("static: %v", err)
	}
	from := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("s")}}}
	for _, static := range []bool{false, true} {
		if _, err := fetch(t, away, podactor.EnvironmentRequest{Pod: podWith(corev1.Container{EnvFrom: from}), Static: static}); err == nil {
			t.Errorf("static %v: a secret that can not be asked for is not needed", static)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := fetch(t, &cluster{hang: true}, podactor.EnvironmentRequest{Pod: podWith(corev1.Container{}), Static: true})
		if took := time.Since(start); err != nil || took > time.Second {
			t.Errorf("a static pod waits %v for its services: %v", took, err)
		}
	})
}

// disk is a Volumes with one directory.
type disk struct {
	dir string
	err error
}

func (d disk) Mount(context.Context, podactor.MountRequest) (podactor.MountResult, error) {
	return podactor.MountResult{HostPath: d.dir}, d.err
}

// TestEnvironmentFiles: what a container may have put into its volume.
func TestEnvironmentFiles(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write := func(path, content string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "secret"), "no")
	write(filepath.Join(dir, "env"), "A='1'")
	write(filepath.Join(dir, "sub/env"), "A='2'")
	write(filepath.Join(dir, "big"), strings.Repeat("x", maxFile+1))
	for link, to := range map[string]string{"inside": "sub/env", "out": filepath.Join(outside, "secret"), "up": "../../../../../../etc/passwd"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"env": "A='1'", "sub/env": "A='2'", "inside": "A='2'", "none": "", "sub/none": "",
		"out": "!leads out", "up": "!leads out", "../x": "!leads out", "pipe": "!not a regular file", "sub": "!not a regular file", "big": "!larger than",
	} {
		pod := podWith(corev1.Container{
			VolumeMounts: []corev1.VolumeMount{{Name: "v"}},
			Env:          []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v", Path: path}}}},
		})
		e, err := New(&cluster{}, disk{dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Environment(t.Context(), podactor.EnvironmentRequest{Pod: pod, Container: "c"})
		part, fails := strings.CutPrefix(want, "!")
		if fails {
			if err == nil || !strings.Contains(err.Error(), part) || !strings.HasPrefix(err.Error(), "couldn't parse env file") {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if content := string(got.Files[podactor.EnvFile{Volume: "v", Path: path}]); err != nil || content != want {
			t.Errorf("%s: %q, %v", path, content, err)
		}
	}
}

func TestVolumeOfAFileThatIsNotThere(t *testing.T) {
	env := []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v", Path: "p"}}}}
	mounted := corev1.Container{Env: env, VolumeMounts: []corev1.VolumeMount{{Name: "v"}}}
	for want, tc := range map[string]struct {
		container corev1.Container
		volumes   Volumes
	}{
		`cannot find the volume "v" referenced by FileKeyRef`:         {corev1.Container{Env: env}, disk{dir: t.TempDir()}},
		`failed to get host path for volume "v": file does not exist`: {mounted, disk{err: fs.ErrNotExist}},
		`cannot find the volume "v" referenced by FileKeyRef ` + "\b": {mounted, nil},
	} {
		e, err := New(&cluster{}, tc.volumes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Environment(t.Context(), podactor.EnvironmentRequest{Pod: podWith(tc.container), Container: "c"})
		if err == nil || err.Error() != strings.TrimSuffix(want, " \b") {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// classes is a ClassGetter.
type classes struct{ err error }

func (c classes) RuntimeClass(_ context.Context, class string) (string, error) {
	return class + "-handler", c.err
}

func TestRuntimeClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		classes podactor.RuntimeClasses
		want    string // the handler, or the error behind "!"
	}{
		"there":   {RuntimeClasses{classes{}}, "kata-handler"},
		"missing": {RuntimeClasses{classes{notFound(`runtimeclass.node.k8s.io "kata"`)}}, `!runtimeclass.node.k8s.io "kata" not found`},
		"away":    {RuntimeClasses{classes{errors.New("no route")}}, "!failed to lookup RuntimeClass kata: no route"},
		"static":  {RuntimeHandlers{"kata": "k"}, "k"},
		"nowhere": {RuntimeHandlers{}, `!runtimeclass.node.k8s.io "kata" not found`},
	} {
		got, err := tc.classes.RuntimeHandler(t.Context(), podactor.RuntimeHandlerRequest{Class: "kata"})
		text := got.Handler
		if err != nil {
			text = "!" + err.Error()
		}
		if text != tc.want {
			t.Errorf("%s: %q, want %q", name, text, tc.want)
		}
	}
	if _, err := NewRuntimeClasses(nil); err == nil {
		t.Error("no getter is fine")
	}
	if _, err := New(nil, nil); err == nil {
		t.Error("no objects are fine")
	}
}
