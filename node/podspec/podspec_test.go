package podspec

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/resources"
	"nodekit.dev/runtime"
)

const gib = 1 << 30

// testConfig is a node with a cluster's DNS.
func testConfig() Config {
	cfg := Default()
	cfg.NodeName = "node-1"
	cfg.NodeIPs = []string{"10.0.0.1", "fd00::1"}
	cfg.ClusterDNS = []string{"10.96.0.10"}
	cfg.ClusterDomain = "cluster.local"
	cfg.HostDNS = func() (runtime.DNSConfig, error) {
		return runtime.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"example.org"}, Options: []string{"rotate"}}, nil
	}
	cfg.Cgroups = resources.CgroupNames{Driver: resources.Cgroupfs}
	cfg.MachineMemory = 4 * gib
	cfg.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}
	cfg.AppArmor = true
	cfg.ManageHosts = true
	cfg.NodeHosts = func() ([]byte, error) { return []byte("127.0.0.1\tlocalhost\n"), nil }
	cfg.ContainerHash = func(c *corev1.Container) string {
		h := fnv.New32a()
		fmt.Fprint(h, c.Name, c.Image)
		return fmt.Sprintf("%x", h.Sum32())
	}
	return cfg
}

func newBuilder(t testing.TB, change ...func(*Config)) *Builder {
	t.Helper()
	cfg := testConfig()
	for _, f := range change {
		f(&cfg)
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// simplePod is what most manifests are: one container with the API server's
// defaults applied.
func simplePod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "default", UID: "0a1b-2c3d",
			Labels:      map[string]string{"app": "web"},
			Annotations: map[string]string{"note": "n1", runtime.AnnotationConfigSource: "file"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.test/web:1",
				TerminationMessagePath:   "/dev/termination-log",
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				ImagePullPolicy:          corev1.PullIfNotPresent,
			}},
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64(30)),
			DNSPolicy:                     corev1.DNSClusterFirst,
			SchedulerName:                 "default-scheduler",
			ServiceAccountName:            "default",
			DeprecatedServiceAccount:      "default",
			AutomountServiceAccountToken:  new(true),
			EnableServiceLinks:            new(true),
			Priority:                      new(int32(0)),
			PreemptionPolicy:              new(corev1.PreemptLowerPriority),
			NodeName:                      "node-1",
			SecurityContext:               &corev1.PodSecurityContext{},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	_, err := New(Config{RootDir: "relative", PodLogsDir: "/logs", Cgroups: resources.CgroupNames{Driver: "x"},
		AllowedUnsafeSysctls: []string{"vm.swappiness"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`RootDir "relative"`, "MachineMemory 0", "ContainerHash", `cgroup driver "x"`, `"vm.swappiness"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s: %v", want, err)
		}
	}
}
