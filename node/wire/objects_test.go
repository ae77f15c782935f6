package wire_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// cloud is a cluster: a source of one pod, and what its pods refer to.
type cloud struct{ pod *corev1.Pod }

func (cloud) Name() string { return "api" }

func (c cloud) Run(ctx context.Context, updates chan<- node.SourceUpdate) error {
	select {
	case updates <- node.SourceUpdate{Source: "api", Pods: []*corev1.Pod{c.pod}}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

func (cloud) ConfigMap(context.Context, types.UID, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"place": "sky"}}, nil
}

func (cloud) Secret(context.Context, types.UID, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"user": []byte("cloud")}}, nil
}

// referring pods show what they were given.
func referring(uid, name, from string) *corev1.Pod {
	pod := podNamed(uid, name, func(p *corev1.Pod) {
		p.Annotations = map[string]string{runtime.AnnotationConfigSource: from}
		p.Spec.Containers[0].Env = []corev1.EnvVar{
			{Name: "PLACE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}, Key: "place",
			}}},
			{Name: "LOGIN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "login"}, Key: "user",
			}}},
		}
	})
	source.Default(pod)
	return pod
}

const local = `{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {place: roof}}
---
{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {user: root}}
`

// TestLocalObjects: static pods get them, and in an agent that stands alone all
// pods do; the pods of a cluster get the cluster's.
func TestLocalObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		folder, cluster bool
		want            map[string]string // by pod
	}{
		"both":   {true, true, map[string]string{"static": "roof root", "theirs": "sky cloud"}},
		"alone":  {true, false, map[string]string{"static": "roof root", "theirs": "roof root"}},
		"member": {false, true, map[string]string{"static": "sky cloud", "theirs": "sky cloud"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := runtimetest.NewWorld(t, runtimetest.Config{})
			cfg := config(t, w.Serve(t, t.TempDir()).Endpoint())
			if tc.folder {
				cfg.LocalObjects = t.TempDir()
				must(t, os.WriteFile(filepath.Join(cfg.LocalObjects, "all.yaml"), []byte(local), 0o600))
			}
			api := cloud{referring("2", "theirs", "api")}
			a := run(t, cfg, wire.WithSource(sourceOf(t, referring("1", "static", "go"))), wire.WithParts(func(p *wire.Parts) {
				p.PodSource = api
				p.Join = func(j wire.Joining) ([]wire.Part, error) {
					if tc.cluster {
						j.Parts.ConfigMaps, j.Parts.Secrets = api, api
					}
					return nil, nil
				}
			}))
			got := map[string]string{}
			for len(got) < len(tc.want) {
				u := <-a.phases
				if u.Status.Phase != corev1.PodRunning {
					continue
				}
				_, id, _ := strings.Cut(u.Status.ContainerStatuses[0].ContainerID, "://")
				cfg, _ := w.ContainerConfig(id)
				env := map[string]string{}
				for _, v := range cfg.Env {
					env[v.Name] = v.Value
				}
				name, _, _ := strings.Cut(u.Name, "-")
				got[name] = env["PLACE"] + " " + env["LOGIN"]
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestNoObjects: an agent without any source of them says so.
func TestNoObjects(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	cfg := config(t, w.Serve(t, t.TempDir()).Endpoint())
	a := run(t, cfg, wire.WithSource(sourceOf(t, referring("1", "static", "go"))))
	for u := range a.phases {
		if len(u.Status.ContainerStatuses) == 0 || u.Status.ContainerStatuses[0].State.Waiting == nil {
			continue
		}
		if waiting := u.Status.ContainerStatuses[0].State.Waiting; waiting.Reason == "CreateContainerConfigError" {
			if waiting.Message != `configmap "conf" not found` {
				t.Errorf("message %q", waiting.Message)
			}
			return
		}
	}
}

func TestLocalObjectsIsAbsolute(t *testing.T) {
	cfg := config(t, "unix:///nowhere")
	cfg.LocalObjects = "objects"
	if _, err := wire.New(cfg); err == nil || !strings.Contains(err.Error(), `LocalObjects: "objects" must be an absolute path`) {
		t.Errorf("error %v", err)
	}
}
