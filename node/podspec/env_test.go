package podspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

func TestExpand(t *testing.T) {
	vars := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "1", "B": "$(A)", "EMPTY": "", "a.b-c": "odd"}[name]
		return v, ok
	}
	for in, want := range map[string]string{
		"":           "",
		"plain":      "plain",
		"$(A)":       "1",
		"x$(A)y$(A)": "x1y1",
		"$(B)":       "$(A)", // once only
		"$(EMPTY)":   "",
		"$(a.b-c)":   "odd",
		"$(NONE)":    "$(NONE)",
		"$$(A)":      "$(A)",
		"$$$(A)":     "$1",
		"$$$$(A)":    "$$(A)",
		"$A":         "$A",
		"$":          "$",
		"$$":         "$",
		"a$":         "a$",
		"$(A":        "$(A",
		"$()":        "$()",
		"$($(A))":    "$($(A))",
		"$(A)$":      "1$",
		"$ (A)":      "$ (A)",
		"日$(A)本":     "日1本",
	} {
		if got := expand(in, vars); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzExpand holds what any text must keep to.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "$(A)", "$$(A)", "$(", "$$$", "a$(A)b$(B)c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		none := func(string) (string, bool) { return "", false }
		if got := expand(text, none); !strings.Contains(text, "$$") && got != text {
			t.Errorf("nothing to replace in %q, but got %q", text, got)
		}
		escaped := strings.ReplaceAll(text, "$", "$$")
		if got := expand(escaped, func(string) (string, bool) { return "X", true }); got != text {
			t.Errorf("%q escaped becomes %q", text, got)
		}
	})
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func resourceEnv(name, container, what, divisor string) corev1.EnvVar {
	ref := &corev1.ResourceFieldSelector{ContainerName: container, Resource: what}
	if divisor != "" {
		ref.Divisor = resource.MustParse(divisor)
	}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: ref}}
}

func podWithEnv(env ...corev1.EnvVar) *corev1.Pod {
	return simplePod(func(p *corev1.Pod) {
		p.Labels["a/b"] = "label's"
		p.Spec.Containers[0].Env = env
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("100Mi")}
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"cpu": resource.MustParse("250m"), "hugepages-2Mi": resource.MustParse("4Mi")},
		}}}
	})
}

func TestEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		env  []corev1.EnvVar
		want []runtime.EnvVar
	}{
		"order and expansion": {
			[]corev1.EnvVar{{Name: "B", Value: "$(A)"}, {Name: "A", Value: "1"}, {Name: "C", Value: "$(A)-$(B)"}},
			[]runtime.EnvVar{{Name: "B", Value: "$(A)"}, {Name: "A", Value: "1"}, {Name: "C", Value: "1-$(A)"}},
		},
		"the last value wins": {
			[]corev1.EnvVar{{Name: "P", Value: "x"}, {Name: "Q", Value: "y"}, {Name: "P", Value: "$(P):z"}},
			[]runtime.EnvVar{{Name: "P", Value: "x:z"}, {Name: "Q", Value: "y"}},
		},
		"fields": {
			[]corev1.EnvVar{
				fieldEnv("1", "metadata.name"), fieldEnv("2", "metadata.namespace"), fieldEnv("3", "metadata.uid"),
				fieldEnv("4", "metadata.labels['a/b']"), fieldEnv("5", "metadata.annotations['note']"), fieldEnv("6", "metadata.labels['none']"),
				fieldEnv("7", "spec.nodeName"), fieldEnv("8", "spec.serviceAccountName"),
				fieldEnv("9", "status.hostIP"), fieldEnv("10", "status.hostIPs"), fieldEnv("11", "status.podIP"), fieldEnv("12", "status.podIPs"),
			},
			[]runtime.EnvVar{
				{Name: "1", Value: "web"}, {Name: "2", Value: "default"}, {Name: "3", Value: "0a1b-2c3d"},
				{Name: "4", Value: "label's"}, {Name: "5", Value: "n1"}, {Name: "6", Value: ""},
				{Name: "7", Value: "node-1"}, {Name: "8", Value: "default"},
				{Name: "9", Value: "10.0.0.1"}, {Name: "10", Value: "10.0.0.1,fd00::1"}, {Name: "11", Value: "10.1.0.7"}, {Name: "12", Value: "10.1.0.7,fd01::7"},
			},
		},
		"resources": {
			[]corev1.EnvVar{
				resourceEnv("cpu, rounded up", "", "requests.cpu", ""), resourceEnv("milli", "", "requests.cpu", "1m"),
				resourceEnv("bytes", "", "requests.memory", ""), resourceEnv("Gi", "", "requests.memory", "1Gi"),
				resourceEnv("node's", "", "limits.memory", "1Mi"), resourceEnv("node's cpu", "", "limits.cpu", "1"),
				resourceEnv("another's", "init", "limits.cpu", "1m"), resourceEnv("huge", "init", "limits.hugepages-2Mi", "1Mi"),
				resourceEnv("not asked", "init", "requests.memory", ""),
			},
			[]runtime.EnvVar{
				{Name: "cpu, rounded up", Value: "2"}, {Name: "milli", Value: "1500"},
				{Name: "bytes", Value: "104857600"}, {Name: "Gi", Value: "1"},
				{Name: "node's", Value: "4096"}, {Name: "node's cpu", Value: "2"},
				{Name: "another's", Value: "250"}, {Name: "huge", Value: "4"}, {Name: "not asked", Value: "0"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{
				Pod: podWithEnv(tc.env...), Container: "main", PodIPs: []string{"10.1.0.7", "fd01::7"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Env); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The node may get its addresses after the builder was made.
func TestHostIPsOfTheRequest(t *testing.T) {
	pod := podWithEnv(fieldEnv("host", "status.hostIP"), fieldEnv("pod", "status.podIPs"))
	pod.Spec.HostNetwork = true
	got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main", HostIPs: []string{"10.0.0.9", "fd00::9"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []runtime.EnvVar{{Name: "host", Value: "10.0.0.9"}, {Name: "pod", Value: "10.0.0.9,fd00::9"}}
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A resolver on the node itself is asked in the families that the node has now.
func TestLocalDNSOfTheRequest(t *testing.T) {
	b := newBuilder(t, func(c *Config) { c.HostDNS, c.LocalDNS, c.ClusterDNS = nil, true, nil })
	got, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: simplePod(), HostIPs: []string{"fd00::9"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"::1"}, got.DNS.Servers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnvironmentErrors(t *testing.T) {
	for want, env := range map[string]corev1.EnvVar{
		`env X: fieldRef "spec.hostNetwork"`:                                 fieldEnv("X", "spec.hostNetwork"),
		`env X: fieldRef "metadata.labels"`:                                  fieldEnv("X", "metadata.labels"),
		`env X: resourceFieldRef "limits.pods": no such resource`:            resourceEnv("X", "", "limits.pods", ""),
		`env X: resourceFieldRef "used.cpu": must begin with`:                resourceEnv("X", "", "used.cpu", ""),
		`env X: pod default/web has no container "nope"`:                     resourceEnv("X", "nope", "limits.cpu", ""),
		`env X: resourceFieldRef "limits.ephemeral-storage": container main`: resourceEnv("X", "", "limits.ephemeral-storage", ""),
		`env X: valueFrom: not known`:                                        {Name: "X", ValueFrom: &corev1.EnvVarSource{}},
	} {
		_, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: podWithEnv(env), Container: "main"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestHostNetworkPodsHaveTheNodesAddresses(t *testing.T) {
	pod := podWithEnv(fieldEnv("IP", "status.podIP"), fieldEnv("IPS", "status.podIPs"))
	pod.Spec.HostNetwork = true
	got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main"})
	if err != nil {
		t.Fatal(err)
	}
	want := []runtime.EnvVar{{Name: "IP", Value: "10.0.0.1"}, {Name: "IPS", Value: "10.0.0.1,fd00::1"}}
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
