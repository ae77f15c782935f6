package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// confinement: what the pod's spec asks for is what its process is held to,
// as the kernel tells it from inside.
func confinement(t *testing.T, e *env) {
	c := shell("main", untilTerm)
	c.SecurityContext = &corev1.SecurityContext{
		RunAsUser: ptr(int64(1234)), RunAsGroup: ptr(int64(5678)), AllowPrivilegeEscalation: ptr(false),
		ReadOnlyRootFilesystem: ptr(true),
		Capabilities:           &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
		SeccompProfile:         &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	c.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
	c.Env = []corev1.EnvVar{
		{Name: "PLAIN", Value: "value"},
		{Name: "EXPANDED", Value: "$(PLAIN)-$(MISSING)-$$(PLAIN)"},
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
	}
	pod := newPod("confinement", c)
	pod.Spec.Hostname = "named"
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroups: []int64{4321}}
	e.apply(t, pod)
	got := e.until(t, "confinement", ready)

	env := e.execIn(t, got, "main", "env")
	status := e.execIn(t, got, "main", "cat", "/proc/1/status")
	for text, wants := range map[string][]string{
		env: {"PLAIN=value\n", "EXPANDED=value-$(MISSING)-$(PLAIN)\n", "IP=" + got.Status.PodIP + "\n", "LIMIT=67108864\n"},
		status: {
			"Uid:\t1234\t1234\t1234\t1234\n", "Gid:\t5678\t5678\t5678\t5678\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
			"CapBnd:\t0000000000000400\n",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %q in\n%s", want, text)
			}
		}
	}
	if groups := e.execIn(t, got, "main", "id", "-G"); !strings.Contains(groups, "4321") {
		t.Errorf("the groups are %q, without 4321", groups)
	}
	if name := e.execIn(t, got, "main", "hostname"); name != "named\n" {
		t.Errorf("the hostname is %q", name)
	}
	if script := e.execIn(t, got, "main", "sh", "-c", "touch /x 2>/dev/null || echo refused"); script != "refused\n" {
		t.Errorf("the root filesystem can be written to")
	}
	checkCgroups(t, e, got)
}

// checkCgroups reads the limits of the container's and the pod's cgroup.
func checkCgroups(t *testing.T, e *env, pod corev1.Pod) {
	t.Helper()
	if got := qosOf(e.execIn(t, pod, "main", "cat", "/proc/1/cgroup")); got != "kubepods/burstable/pod"+string(pod.UID) {
		t.Errorf("its cgroup is %q, not that of a burstable pod", got)
	}
	podDir := e.bed.CgroupRoot + "/kubepods/burstable/pod" + string(pod.UID)
	status, _ := statusOf(pod, "main")
	container := podDir + "/" + bareID(status)
	for file, want := range map[string]string{
		"memory" + podDir + "/memory.limit_in_bytes":    "67108864",
		"memory" + container + "/memory.limit_in_bytes": "67108864",
		"cpu" + podDir + "/cpu.shares":                  "102",
		"cpu" + podDir + "/cpu.cfs_quota_us":            "50000",
	} {
		wantInFiles(t, filepath.Join("/sys/fs/cgroup", file), want)
	}
}

// wantInFiles checks every file of a pattern; there must be one.
func wantInFiles(t *testing.T, pattern, want string) {
	t.Helper()
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		t.Errorf("there is no %s", pattern)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if got := strings.TrimSpace(string(text)); err != nil || got != want {
			t.Errorf("%s holds %q, not %q (%v)", file, got, want, err)
		}
	}
}

// qosOf cuts the part from kubepods to the pod out of /proc/PID/cgroup.
func qosOf(text string) string {
	for line := range strings.Lines(text) {
		if _, path, found := strings.Cut(strings.TrimSpace(line), "/kubepods/"); found {
			return "kubepods/" + filepath.Dir(path)
		}
	}
	return ""
}

// refused: a pod that asks for what the agent does not do is refused with the
// path of the field, and never runs with less.
func refused(t *testing.T, e *env) {
	pod := newPod("refused", shell("main", untilTerm))
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{}}
	e.apply(t, pod)
	eventually(t, patience, func() error {
		pods, err := e.podsNamed(t.Context(), "refused")
		if err != nil {
			return err
		}
		for _, p := range pods {
			if strings.Contains(p.Status.Message, "spec.securityContext.windowsOptions") {
				return nil
			}
		}
		return fmt.Errorf("of %d pods none says that spec.securityContext.windowsOptions is not acted on", len(pods))
	})
}
