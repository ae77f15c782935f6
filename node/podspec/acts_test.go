package podspec

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node/podactor"
)

// TestEveryActedFieldActs sets each field that this package says to act on, one
// at a time, and sees that the outcome is another: a configuration, the hosts
// file, an error or a refusal. A field that is parsed and ignored fails here.
func TestEveryActedFieldActs(t *testing.T) {
	tried := 0
	b := newBuilder(t)
	before := outcome(b, actPod(t, ""))
	eachRule("", reflect.TypeFor[corev1.PodSpec](), func(path string, r rule) {
		if r.verdict != acted || strings.HasPrefix(r.why, "node/") || strings.HasPrefix(r.why, "runtime/") || strings.HasPrefix(r.why, "package volume") {
			return // acted on elsewhere
		}
		tried++
		if after := outcome(b, actPod(t, path)); reflect.DeepEqual(before, after) {
			t.Errorf("%s is set and nothing changes", path)
		}
	})
	if tried < 80 {
		t.Errorf("only %d fields found: the walk is broken", tried)
	}
}

// actPod is a pod with one more field set.
func actPod(t *testing.T, path string) *corev1.Pod {
	pod := simplePod(func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.ServiceAccountName = "", ""
		p.Spec.Subdomain = "sub"
		p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PLAIN"}, fieldEnv("NODE", "spec.nodeName"), fieldEnv("SA", "spec.serviceAccountName")}
	})
	if path == "" {
		return pod
	}
	setField(t, reflect.ValueOf(&pod.Spec).Elem(), path)
	setTelling(pod, path)
	return pod
}

// setTelling replaces values that mean the same as none.
func setTelling(pod *corev1.Pod, path string) {
	c := &pod.Spec.Containers[0]
	switch {
	case strings.HasPrefix(path, "initContainers[]"):
		c = &pod.Spec.InitContainers[0]
	case strings.HasPrefix(path, "ephemeralContainers[]"):
		c = (*corev1.Container)(&pod.Spec.EphemeralContainers[0].EphemeralContainerCommon)
	}
	some := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	switch _, field, _ := strings.Cut(path, "."); {
	case field == "resources.limits":
		c.Resources.Limits = some
	case field == "resources.requests":
		c.Resources.Requests = some
	case field == "securityContext.allowPrivilegeEscalation":
		c.SecurityContext.AllowPrivilegeEscalation = new(false)
	case path == "overhead":
		pod.Spec.Overhead = some
	case path == "enableServiceLinks":
		pod.Spec.EnableServiceLinks = new(false)
	case path == "priorityClassName":
		pod.Spec.PriorityClassName = "system-node-critical"
	}
}

func outcome(b *Builder, pod *corev1.Pod) []any {
	sandbox, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: pod})
	out := []any{errText(b.Check(pod)), sandbox, errText(err)}
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, corev1.Container(c.EphemeralContainerCommon))
	}
	for _, c := range all {
		container, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: c.Name, Environment: somewhere()})
		out = append(out, container, errText(err))
	}
	_, hosts, _, err := b.HostsFile(pod, []string{"10.1.0.7"})
	return append(out, string(hosts), errText(err))
}

// somewhere has what a field that fill has filled may refer to.
func somewhere() podactor.EnvironmentResult {
	return podactor.EnvironmentResult{
		ConfigMaps: map[string]*corev1.ConfigMap{"x": {Data: map[string]string{"x": "config"}}},
		Secrets:    map[string]*corev1.Secret{"x": {Data: map[string][]byte{"x": []byte("secret")}}},
		Files:      map[podactor.EnvFile][]byte{{Volume: "x", Path: "x"}: []byte("x='file'")},
		Services:   []*corev1.Service{service("default", "db", "10.96.0.5", corev1.ServicePort{Port: 1})},
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
