package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

// The golden configurations are written out whole, so that nothing changes
// without being seen in review.

func TestSandboxOfASimplePod(t *testing.T) {
	got, err := newBuilder(t).Sandbox(podactor.SandboxSpecRequest{Pod: simplePod(), Attempt: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.SandboxConfig{
		Name: "web", Namespace: "default", UID: "0a1b-2c3d", Attempt: 2,
		Hostname:     "web",
		LogDirectory: "/var/log/pods/default_web_0a1b-2c3d",
		DNS: runtime.DNSConfig{
			Servers:  []string{"10.96.0.10"},
			Searches: []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.org"},
			Options:  []string{"ndots:5"},
		},
		Labels: map[string]string{
			"app": "web", "io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.uid": "0a1b-2c3d",
		},
		Annotations:  map[string]string{"note": "n1", "kubernetes.io/config.source": "file"},
		CgroupParent: "/kubepods/besteffort/pod0a1b-2c3d",
		Security: runtime.SandboxSecurity{
			Namespaces: runtime.Namespaces{Network: "pod", PID: "container", IPC: "pod"},
			Seccomp:    &runtime.Profile{Type: "RuntimeDefault"},
		},
		Resources: &runtime.Resources{CPUShares: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestContainerOfASimplePod(t *testing.T) {
	got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{
		Pod: simplePod(), Container: "main", Attempt: 3, Restarts: 4, ImageRef: "sha256:1",
		PodIPs: []string{"10.1.0.7"}, TerminationLog: "/var/lib/kubelet/pods/0a1b-2c3d/containers/main/x",
		Devices: []runtime.Device{{HostPath: "/dev/sda", ContainerPath: "/dev/a", Permissions: "mrw"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.ContainerConfig{
		Name: "main", Attempt: 3,
		Image: runtime.Image{Ref: "sha256:1", Requested: "registry.test/web:1"},
		Mounts: []runtime.Mount{
			{HostPath: "/var/lib/kubelet/pods/0a1b-2c3d/etc-hosts", ContainerPath: "/etc/hosts", Propagation: "private"},
			{HostPath: "/var/lib/kubelet/pods/0a1b-2c3d/containers/main/x", ContainerPath: "/dev/termination-log", Propagation: "private"},
		},
		Devices: []runtime.Device{{HostPath: "/dev/sda", ContainerPath: "/dev/a", Permissions: "mrw"}},
		Labels: map[string]string{
			"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.uid": "0a1b-2c3d",
			"io.kubernetes.container.name": "main",
		},
		Annotations: map[string]string{
			"io.kubernetes.container.hash":                     testConfig().ContainerHash(&simplePod().Spec.Containers[0]),
			"io.kubernetes.container.restartCount":             "4",
			"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
			"io.kubernetes.container.terminationMessagePolicy": "File",
			"io.kubernetes.pod.terminationGracePeriod":         "30",
		},
		LogPath:   "main/4.log",
		Resources: runtime.Resources{CPUShares: 2, OOMScoreAdj: 1000},
		Security: runtime.ContainerSecurity{
			Namespaces: runtime.Namespaces{Network: "pod", PID: "container", IPC: "pod"},
			RunAsUser:  new(int64(0)), // the image's
			MaskedPaths: []string{
				"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
				"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
				"/sys/firmware", "/sys/devices/virtual/powercap",
			},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			Seccomp:       &runtime.Profile{Type: "Unconfined"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// richPod sets most of what is acted on.
func richPod() *corev1.Pod {
	return simplePod(func(pod *corev1.Pod) {
		pod.DeletionGracePeriodSeconds = new(int64(5))
		pod.Spec.Hostname, pod.Spec.Subdomain = "db-0", "db"
		pod.Spec.SetHostnameAsFQDN = new(true)
		pod.Spec.ShareProcessNamespace = new(true)
		pod.Spec.HostIPC = true
		pod.Spec.RuntimeClassName = new("kata")
		pod.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("64Mi")}
		pod.Spec.DNSConfig = &corev1.PodDNSConfig{
			Nameservers: []string{"192.0.2.1", "10.96.0.10"}, Searches: []string{"corp.test"},
			Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "edns0"}},
		}
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsUser: new(int64(1000)), RunAsGroup: new(int64(2000)), RunAsNonRoot: new(true),
			FSGroup: new(int64(3000)), SupplementalGroups: []int64{10, 11},
			SupplementalGroupsPolicy: new(corev1.SupplementalGroupsPolicyStrict),
			SELinuxOptions:           &corev1.SELinuxOptions{Level: "s0:c1"},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			AppArmorProfile:          &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
			Sysctls:                  []corev1.Sysctl{{Name: "net/ipv4/ip_unprivileged_port_start", Value: "0"}},
		}
		c := &pod.Spec.Containers[0]
		c.Command, c.Args = []string{"/bin/$(KIND)"}, []string{"--at=$(IP)", "$$(KIND)", "$(NONE)"}
		c.WorkingDir = "/srv"
		c.Env = []corev1.EnvVar{
			{Name: "KIND", Value: "db"},
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "BOTH", Value: "$(KIND)@$(IP)"},
			{Name: "MEM", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
				Resource: "limits.memory", Divisor: resource.MustParse("1Mi"),
			}}},
		}
		c.Ports = []corev1.ContainerPort{
			{Name: "sql", ContainerPort: 5432, HostPort: 15432, Protocol: corev1.ProtocolTCP, HostIP: "127.0.0.1"},
			{Name: "inner", ContainerPort: 9000, Protocol: corev1.ProtocolTCP},
		}
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/stop", Port: intstr.FromString("sql"), Scheme: corev1.URISchemeHTTP},
		}}
		c.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi"), "hugepages-2Mi": resource.MustParse("4Mi")},
		}
		c.TTY, c.Stdin, c.StdinOnce = true, true, true
		c.SecurityContext = &corev1.SecurityContext{
			RunAsUser:                new(int64(1001)),
			ReadOnlyRootFilesystem:   new(true),
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("profiles/a.json")},
			AppArmorProfile:          &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("my-profile")},
		}
	})
}

func richBuilder(t *testing.T) *Builder {
	return newBuilder(t, func(c *Config) {
		c.Features = func(handler string) RuntimeFeatures {
			return RuntimeFeatures{SupplementalGroupsPolicy: true, RecursiveReadOnlyMounts: handler != "kata-qemu"}
		}
		c.HugepageSizes = []string{"2MB", "1GB"}
		c.ExtraMaskedPaths = []string{"/sys/extra"}
	})
}

func TestSandboxOfARichPod(t *testing.T) {
	b := richBuilder(t)
	if err := b.Check(richPod()); err != nil {
		t.Fatalf("the rich pod is refused: %v", err)
	}
	got, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: richPod(), RuntimeHandler: "kata-qemu"})
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.SandboxConfig{
		Name: "web", Namespace: "default", UID: "0a1b-2c3d",
		RuntimeHandler: "kata-qemu",
		Hostname:       "db-0.db.default.svc.cluster.local",
		LogDirectory:   "/var/log/pods/default_web_0a1b-2c3d",
		DNS: runtime.DNSConfig{
			Servers:  []string{"10.96.0.10", "192.0.2.1"},
			Searches: []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.org", "corp.test"},
			Options:  []string{"ndots:2", "edns0"},
		},
		PortMappings: []runtime.PortMapping{{Protocol: "TCP", ContainerPort: 5432, HostPort: 15432, HostIP: "127.0.0.1"}},
		Labels: map[string]string{
			"app": "web", "io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.uid": "0a1b-2c3d",
		},
		Annotations:  map[string]string{"note": "n1", "kubernetes.io/config.source": "file"},
		CgroupParent: "/kubepods/burstable/pod0a1b-2c3d",
		Sysctls:      map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"},
		Security: runtime.SandboxSecurity{
			Namespaces: runtime.Namespaces{Network: "pod", PID: "pod", IPC: "node"},
			SELinux:    &runtime.SELinuxOptions{Level: "s0:c1"},
			RunAsUser:  new(int64(1000)), RunAsGroup: new(int64(2000)),
			SupplementalGroups: []int64{10, 11, 3000}, SupplementalGroupsPolicy: "Strict",
			Seccomp: &runtime.Profile{Type: "RuntimeDefault"},
		},
		Overhead: &runtime.Resources{CPUShares: 256, CPUQuota: 25_000, CPUPeriod: 100_000, Memory: 64 << 20},
		Resources: &runtime.Resources{
			CPUShares: 512, CPUQuota: 100_000, CPUPeriod: 100_000, Memory: 2 << 30,
			HugepageLimits: map[string]uint64{"2MB": 4 << 20},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestContainerOfARichPod(t *testing.T) {
	pod := richPod()
	got, err := richBuilder(t).Container(podactor.ContainerSpecRequest{
		Pod: pod, Container: "main", ImageRef: "sha256:1", PodIPs: []string{"10.1.0.7"}, ImageUser: "root", RuntimeHandler: "kata-qemu",
		Mounts: []runtime.Mount{{HostPath: "/v/data", ContainerPath: "/data", ReadOnly: true, RecursiveReadOnly: true, Propagation: "private"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(richPod(), pod); diff != "" {
		t.Errorf("the pod was changed:\n%s", diff)
	}
	want := runtime.ContainerConfig{
		Name:    "main",
		Image:   runtime.Image{Ref: "sha256:1", Requested: "registry.test/web:1", RuntimeHandler: "kata-qemu"},
		Command: []string{"/bin/db"}, Args: []string{"--at=10.1.0.7", "$(KIND)", "$(NONE)"},
		WorkingDir: "/srv",
		Env: []runtime.EnvVar{
			{Name: "KIND", Value: "db"}, {Name: "IP", Value: "10.1.0.7"}, {Name: "BOTH", Value: "db@10.1.0.7"}, {Name: "MEM", Value: "2048"},
		},
		Mounts: []runtime.Mount{
			// The runtime handler can not do recursive, and the spec does not insist.
			{HostPath: "/v/data", ContainerPath: "/data", ReadOnly: true, Propagation: "private"},
			{HostPath: "/var/lib/kubelet/pods/0a1b-2c3d/etc-hosts", ContainerPath: "/etc/hosts", Propagation: "private"},
		},
		Labels: map[string]string{
			"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.uid": "0a1b-2c3d",
			"io.kubernetes.container.name": "main",
		},
		Annotations: map[string]string{
			"io.kubernetes.container.hash":                     testConfig().ContainerHash(&pod.Spec.Containers[0]),
			"io.kubernetes.container.restartCount":             "0",
			"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
			"io.kubernetes.container.terminationMessagePolicy": "File",
			"io.kubernetes.pod.terminationGracePeriod":         "30",
			"io.kubernetes.pod.deletionGracePeriod":            "5",
			"io.kubernetes.container.preStopHandler":           `{"httpGet":{"path":"/stop","port":"sql","scheme":"HTTP"}}`,
			"io.kubernetes.container.ports": `[{"name":"sql","hostPort":15432,"containerPort":5432,"protocol":"TCP","hostIP":"127.0.0.1"},` +
				`{"name":"inner","containerPort":9000,"protocol":"TCP"}]`,
		},
		LogPath: "main/0.log",
		Stdin:   true, StdinOnce: true, TTY: true,
		Resources: runtime.Resources{
			CPUShares: 512, CPUQuota: 100_000, CPUPeriod: 100_000, Memory: 2 << 30, OOMScoreAdj: 750,
			HugepageLimits: map[string]uint64{"2MB": 4 << 20, "1GB": 0},
		},
		Security: runtime.ContainerSecurity{
			AddCapabilities: []string{"NET_BIND_SERVICE"}, DropCapabilities: []string{"ALL"},
			Namespaces: runtime.Namespaces{Network: "pod", PID: "pod", IPC: "node"},
			SELinux:    &runtime.SELinuxOptions{Level: "s0:c1"},
			RunAsUser:  new(int64(1001)), RunAsGroup: new(int64(2000)),
			ReadonlyRootfs: true, NoNewPrivileges: true,
			SupplementalGroups: []int64{10, 11, 3000}, SupplementalGroupsPolicy: "Strict",
			MaskedPaths:   append(maskedPaths(), "/sys/extra"),
			ReadonlyPaths: readonlyPaths(),
			Seccomp:       &runtime.Profile{Type: "Localhost", LocalhostRef: "/var/lib/kubelet/seccomp/profiles/a.json"},
			AppArmor:      &runtime.Profile{Type: "Localhost", LocalhostRef: "my-profile"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrivilegedHostPod(t *testing.T) {
	pod := simplePod(func(pod *corev1.Pod) {
		pod.Spec.HostNetwork, pod.Spec.HostPID, pod.Spec.HostIPC = true, true, true
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
	})
	b := newBuilder(t)
	if err := b.Check(pod); err != nil {
		t.Fatal(err)
	}
	sandbox, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	node := runtime.Namespaces{Network: "node", PID: "node", IPC: "node"}
	if !sandbox.Security.Privileged || sandbox.Security.Namespaces != node || sandbox.PortMappings != nil || sandbox.Hostname != "" {
		t.Errorf("sandbox: %+v", sandbox)
	}
	init, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "init"})
	if err != nil {
		t.Fatal(err)
	}
	if !init.Security.Privileged || init.Security.Namespaces != node || len(init.Mounts) != 0 {
		t.Errorf("init container: %+v", init)
	}
	main, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if main.Security.Privileged {
		t.Error("the main container became privileged with its init container")
	}
}
