package guest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// limited is a pod, where its cgroup belongs, and what stands in there: the
// files of cgroup v2, and the same as systemd calls it.
type limited struct {
	name      string
	resources string
	class     corev1.PodQOSClass
	slice     string // UID: the pod's, with "_" for "-"
	cgroupfs  string // UID: the pod's
	files     map[string]string
	systemd   map[string]string
}

// limits has one pod of each class, with a podPidsLimit of 100.
func limits() []limited {
	return []limited{
		{
			name: "guaranteed", resources: "{limits: {cpu: 500m, memory: 64Mi}}", class: corev1.PodQOSGuaranteed,
			slice:    "kubepods.slice/kubepods-podUID.slice",
			cgroupfs: "kubepods/podUID",
			files:    map[string]string{"memory.max": "67108864", "cpu.weight": "20", "cpu.max": "50000 100000", "pids.max": "100"},
			systemd:  map[string]string{"MemoryMax": "67108864", "CPUWeight": "20", "CPUQuotaPerSecUSec": "500ms", "TasksMax": "100"},
		},
		{
			name: "burstable", resources: "{requests: {cpu: 250m, memory: 32Mi}, limits: {cpu: 750m, memory: 48Mi}}", class: corev1.PodQOSBurstable,
			slice:    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice",
			cgroupfs: "kubepods/burstable/podUID",
			files:    map[string]string{"memory.max": "50331648", "cpu.weight": "10", "cpu.max": "75000 100000", "pids.max": "100"},
			systemd:  map[string]string{"MemoryMax": "50331648", "CPUWeight": "10", "CPUQuotaPerSecUSec": "750ms", "TasksMax": "100"},
		},
		{
			name: "besteffort", resources: "{}", class: corev1.PodQOSBestEffort,
			slice:    "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podUID.slice",
			cgroupfs: "kubepods/besteffort/podUID",
			files:    map[string]string{"memory.max": "max", "cpu.weight": "1", "cpu.max": "max 100000", "pids.max": "100"},
			systemd:  map[string]string{"MemoryMax": "infinity", "CPUWeight": "1", "CPUQuotaPerSecUSec": "infinity", "TasksMax": "100"},
		},
	}
}

// With the driver systemd a pod is a slice: systemd knows its limits and does not
// lose them, containers are below, and it goes with the pod.
func TestPodsInSlices(t *testing.T) {
	startNode(t)
	configure(t, "podPidsLimit: 100")
	giveAll(t)
	cgroups := map[string]string{} // by the pod's name
	for _, want := range limits() {
		t.Run(want.name, func(t *testing.T) {
			pod := awaitRunning(t, want.name)
			cgroup := strings.ReplaceAll(want.slice, "UID", strings.ReplaceAll(string(pod.UID), "-", "_"))
			cgroups[want.name] = cgroup
			wantPlace(t, pod, want, cgroup)
			wantProperties(t, path.Base(cgroup), want.systemd)
		})
	}
	mustRun(t, "systemctl", "daemon-reload")
	for _, want := range limits() {
		wantFiles(t, cgroups[want.name], want.files)
		wantProperties(t, path.Base(cgroups[want.name]), want.systemd)
	}
	takeAll(t)
	for _, cgroup := range cgroups {
		wantGone(t, cgroup)
		wantProperties(t, path.Base(cgroup), map[string]string{"ActiveState": "inactive"})
	}
}

// The same limits with the driver cgroupfs, where the kubelet writes them itself.
func TestPodsInCgroupfs(t *testing.T) {
	startNode(t)
	containerd(t, "SystemdCgroup = false")
	configure(t, "cgroupDriver: cgroupfs\npodPidsLimit: 100")
	giveAll(t)
	cgroups := map[string]string{}
	for _, want := range limits() {
		t.Run(want.name, func(t *testing.T) {
			pod := awaitRunning(t, want.name)
			cgroups[want.name] = strings.ReplaceAll(want.cgroupfs, "UID", string(pod.UID))
			wantPlace(t, pod, want, cgroups[want.name])
		})
	}
	takeAll(t)
	for _, cgroup := range cgroups {
		wantGone(t, cgroup)
	}
}

// giveAll gives the kubelet all pods at once: they start side by side.
func giveAll(t *testing.T) {
	t.Helper()
	for _, pod := range limits() {
		givePod(t, pod.name, pod.resources)
	}
}

func takeAll(t *testing.T) {
	t.Helper()
	for _, pod := range limits() {
		takePod(t, pod.name)
	}
	for _, pod := range limits() {
		awaitGone(t, pod.name)
	}
}

// configure starts the kubelet with more than kubeadm's configuration. After the
// test it is stopped: the next start is without.
func configure(t *testing.T, fields string) {
	t.Helper()
	const dir, extra = "/etc/kubernetes/kubelet.conf.d", "/etc/default/kubelet"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "10-test.conf"), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+fields+"\n")
	writeFile(t, extra, `KUBELET_EXTRA_ARGS="--config-dir=`+dir+`"`+"\n")
	t.Cleanup(func() {
		if err := os.Remove(extra); err != nil {
			t.Error(err)
		}
		if _, err := command(context.WithoutCancel(t.Context()), "systemctl", "stop", "kubelet"); err != nil {
			t.Error(err)
		}
	})
	mustRun(t, "systemctl", "restart", "kubelet")
}

// containerd starts it with another setting of SystemdCgroup, and with its own
// after the test.
func containerd(t *testing.T, setting string) {
	t.Helper()
	const file = "/etc/containerd/config.toml"
	before := readFile(t, file)
	writeFile(t, file, strings.Replace(before, "SystemdCgroup = true", setting, 1))
	t.Cleanup(func() {
		writeFile(t, file, before)
		if _, err := command(context.WithoutCancel(t.Context()), "systemctl", "restart", "containerd"); err != nil {
			t.Error(err)
		}
	})
	mustRun(t, "systemctl", "restart", "containerd")
}

// wantPlace looks for the pod's only container right below the cgroup, and for the limits in it.
func wantPlace(t *testing.T, pod *corev1.Pod, want limited, cgroup string) {
	t.Helper()
	if pod.Status.QOSClass != want.class {
		t.Errorf("the class is %s, want %s", pod.Status.QOSClass, want.class)
	}
	if at := path.Dir(cgroupOf(t, containerOf(pod))); at != "/"+cgroup {
		t.Errorf("the container is in %s, want it in /%s", at, cgroup)
	}
	wantFiles(t, cgroup, want.files)
}

func wantFiles(t *testing.T, cgroup string, files map[string]string) {
	t.Helper()
	for name, value := range files {
		if got := readFile(t, filepath.Join("/sys/fs/cgroup", cgroup, name)); got != value {
			t.Errorf("%s/%s has %q, want %q", cgroup, name, got, value)
		}
	}
}

func wantGone(t *testing.T, cgroup string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", cgroup)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cgroup %s is still there (%v)", cgroup, err)
	}
}
