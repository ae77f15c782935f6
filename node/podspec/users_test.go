package podspec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/podactor"
	"nodekit.dev/runtime"
)

func ownUsersPod(p *corev1.Pod) { p.Spec.HostUsers = new(false) }

func userRange() *runtime.UserNamespace {
	ids := []runtime.IDMapping{{HostID: 131072, Length: 65536}}
	return &runtime.UserNamespace{UIDs: ids, GIDs: ids}
}

func TestUserNamespaces(t *testing.T) {
	able := func(c *Config) {
		c.Features = func(handler string) RuntimeFeatures { return RuntimeFeatures{UserNamespaces: handler != "old"} }
	}
	for name, tc := range map[string]struct {
		config  func(*Config)
		handler string
		users   *runtime.UserNamespace
		want    string // part of the error; empty: fine
	}{
		"able":                {able, "", userRange(), ""},
		"nothing known":       {func(*Config) {}, "", userRange(), "can't set `spec.hostUsers: false`, runtime does not support user namespaces"},
		"another handler":     {able, "old", userRange(), "can't set `spec.hostUsers: false`, RuntimeClass handler \"old\" does not support user namespaces"},
		"nobody gave a range": {able, "", nil, "no user namespace was given"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t, tc.config)
			pod := simplePod(ownUsersPod)
			if err := b.Check(pod); err != nil {
				t.Errorf("Check: %v", err)
			}
			got, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: pod, RuntimeHandler: tc.handler, UserNamespace: tc.users})
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v", err)
				}
				return
			}
			if diff := cmp.Diff(tc.users, got.Security.Namespaces.User); diff != "" || err != nil {
				t.Errorf("%v, sandbox (-want +got):\n%s", err, diff)
			}
			c, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main", UserNamespace: tc.users})
			if diff := cmp.Diff(tc.users, c.Security.Namespaces.User); diff != "" || err != nil {
				t.Errorf("%v, container (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := newBuilder(t, able).Container(podactor.ContainerSpecRequest{Pod: simplePod(ownUsersPod), Container: "main"}); err == nil {
		t.Error("a container without its pod's users was made")
	}
}

func TestProcMount(t *testing.T) {
	unmasked := func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}
	}
	b := newBuilder(t)
	if err := b.Check(simplePod(unmasked)); err == nil || !strings.Contains(err.Error(), "hostUsers: false") {
		t.Errorf("with the node's users: %v", err)
	}
	pod := simplePod(unmasked, ownUsersPod)
	if err := b.Check(pod); err != nil {
		t.Error(err)
	}
	got, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main", UserNamespace: userRange()})
	if err != nil || len(got.Security.MaskedPaths)+len(got.Security.ReadonlyPaths) != 0 {
		t.Errorf("%v, masked %v, read-only %v", err, got.Security.MaskedPaths, got.Security.ReadonlyPaths)
	}
}

func TestEphemeralContainer(t *testing.T) {
	pod := simplePod(func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			TargetContainerName: "main",
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Image: "tools:1", Stdin: true, TTY: true,
				SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}},
			},
		}}
	})
	b := newBuilder(t)
	if err := b.Check(pod); err != nil {
		t.Fatal(err)
	}
	got, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "debug", TargetID: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.Namespaces{Network: "pod", PID: "target", IPC: "pod", TargetID: "c1"}
	if diff := cmp.Diff(want, got.Security.Namespaces); diff != "" || !got.Stdin || !got.TTY || got.Security.AddCapabilities[0] != "SYS_PTRACE" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	shared := pod.DeepCopy()
	shared.Spec.ShareProcessNamespace = new(true)
	got, err = b.Container(podactor.ContainerSpecRequest{Pod: shared, Container: "debug", TargetID: "c1"})
	if err != nil || got.Security.Namespaces.PID != "pod" || got.Security.Namespaces.TargetID != "" {
		t.Errorf("%v, the pod's shared processes: %+v", err, got.Security.Namespaces)
	}
}

func TestStopSignal(t *testing.T) {
	pod := simplePod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGUSR1)}
	})
	b := newBuilder(t, func(c *Config) { c.StopSignals = true })
	if err := b.Check(pod); err != nil {
		t.Error(err)
	}
	got, err := b.Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main"})
	if err != nil || got.StopSignal != "SIGUSR1" {
		t.Errorf("%q, %v", got.StopSignal, err)
	}
}

func TestDefaultPodSysctls(t *testing.T) {
	defaults := map[string]string{
		"net/ipv4/ip_forward": "1", "kernel.shmall": "2", "fs.mqueue.msg_max": "3", "user.max_user_namespaces": "4", "kernel.domainname": "d",
	}
	all := map[string]string{
		"net.ipv4.ip_forward": "1", "kernel.shmall": "2", "fs.mqueue.msg_max": "3", "kernel.domainname": "d",
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   map[string]string
	}{
		"plain": {func(*corev1.Pod) {}, all},
		"the pod's own first": {
			func(p *corev1.Pod) {
				p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_forward", Value: "0"}}
			},
			map[string]string{"net.ipv4.ip_forward": "0", "kernel.shmall": "2", "fs.mqueue.msg_max": "3", "kernel.domainname": "d"},
		},
		"host network": {
			func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			map[string]string{"kernel.shmall": "2", "fs.mqueue.msg_max": "3"},
		},
		"host IPC": {
			func(p *corev1.Pod) { p.Spec.HostIPC = true },
			map[string]string{"net.ipv4.ip_forward": "1", "kernel.domainname": "d"},
		},
		"own users": {
			ownUsersPod,
			map[string]string{
				"net.ipv4.ip_forward": "1", "kernel.shmall": "2", "fs.mqueue.msg_max": "3", "kernel.domainname": "d", "user.max_user_namespaces": "4",
			},
		},
	} {
		b := newBuilder(t, func(c *Config) {
			c.DefaultPodSysctls = defaults
			c.Features = func(string) RuntimeFeatures { return RuntimeFeatures{UserNamespaces: true} }
		})
		got, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: simplePod(tc.change), UserNamespace: userRange()})
		if diff := cmp.Diff(tc.want, got.Sysctls); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	cfg := testConfig()
	cfg.DefaultPodSysctls = map[string]string{"vm.swappiness": "1"}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "vm.swappiness") {
		t.Errorf("a default that belongs to the node: %v", err)
	}
}

// TestRecursiveReadOnlyThatTheRuntimeLacks: the stock kubelet's words, when the
// container is made.
func TestRecursiveReadOnlyThatTheRuntimeLacks(t *testing.T) {
	pod := simplePod(func(p *corev1.Pod) {
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{
			Name: "v", ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyEnabled),
		}}
	})
	_, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main"})
	if err == nil || err.Error() != `volume "v" requested recursive read-only mode, but it is not supported by the runtime` {
		t.Errorf("error %v", err)
	}
}

// TestUserOfTheImage: the image's user alone, as the stock kubelet has it.
func TestUserOfTheImage(t *testing.T) {
	for imageUser, want := range map[string]runtime.ContainerSecurity{
		"": {RunAsUser: new(int64(0))}, "7": {RunAsUser: new(int64(7))}, "7:8": {RunAsUser: new(int64(7))}, "www": {RunAsUserName: "www"},
	} {
		got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: simplePod(), Container: "main", ImageUser: imageUser})
		if diff := cmp.Diff(want.RunAsUser, got.Security.RunAsUser); err != nil || diff != "" ||
			got.Security.RunAsUserName != want.RunAsUserName || got.Security.RunAsGroup != nil {
			t.Errorf("%q: %v, %+v", imageUser, err, got.Security)
		}
	}
}

// TestVolumesAreRelabeledWhereTheHostHasSELinux: and those alone that want it.
func TestVolumesAreRelabeledWhereTheHostHasSELinux(t *testing.T) {
	for _, host := range []bool{false, true} {
		cfg := testConfig()
		cfg.SELinux = host
		b, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Container(podactor.ContainerSpecRequest{Pod: simplePod(), Container: "main", Mounts: []runtime.Mount{
			{HostPath: "/a", ContainerPath: "/a", SELinuxRelabel: true}, {HostPath: "/b", ContainerPath: "/b"},
		}})
		if err != nil || got.Mounts[0].SELinuxRelabel != host || got.Mounts[1].SELinuxRelabel {
			t.Errorf("SELinux %v: %+v, %v", host, got.Mounts, err)
		}
	}
}
