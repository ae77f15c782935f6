package podspec

import (
	"reflect"
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
	if strings.HasPrefix(path, "initContainers[]") {
		c = &pod.Spec.InitContainers[0]
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
	case path == "hostUsers":
		pod.Spec.HostUsers = new(false)
	case path == "priorityClassName":
		pod.Spec.PriorityClassName = "system-node-critical"
	}
}

func outcome(b *Builder, pod *corev1.Pod) []any {
	sandbox, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: pod})
	out := []any{errText(b.Check(pod)), sandbox, errText(err)}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			container, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: c.Name})
			out = append(out, container, errText(err))
		}
	}
	_, hosts, _, err := b.HostsFile(pod, []string{"10.1.0.7"})
	return append(out, string(hosts), errText(err))
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
