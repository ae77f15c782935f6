package podspec

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
	"nodekit.dev/resources"
	"nodekit.dev/runtime"
)

func TestHostname(t *testing.T) {
	long := strings.Repeat("a", 62) + "-tail"
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   string // or a part of the error behind "!"
	}{
		"pod's name":      {func(*corev1.Pod) {}, "web"},
		"cut":             {func(p *corev1.Pod) { p.Name = long }, strings.Repeat("a", 62)},
		"spec.hostname":   {func(p *corev1.Pod) { p.Spec.Hostname = "h" }, "h"},
		"host network":    {func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.Hostname = true, "h" }, ""},
		"FQDN":            {func(p *corev1.Pod) { p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN = "s", new(true) }, "web.s.default.svc.cluster.local"},
		"FQDN, no domain": {func(p *corev1.Pod) { p.Spec.SetHostnameAsFQDN = new(true) }, "web"},
		"subdomain alone": {func(p *corev1.Pod) { p.Spec.Subdomain = "s" }, "web"},
		"override":        {func(p *corev1.Pod) { p.Spec.HostnameOverride = new("o.example"); p.Spec.Subdomain = "s" }, "o.example"},
		"override, cut":   {func(p *corev1.Pod) { p.Spec.HostnameOverride = new(strings.Repeat("o", 62) + ".x") }, strings.Repeat("o", 62)},
		"override, no name": {
			func(p *corev1.Pod) { p.Spec.HostnameOverride = new("No_Name") },
			`!pod HostnameOverride "No_Name" is not a valid DNS subdomain: `,
		},
		"64 is the longest": {func(p *corev1.Pod) {
			p.Spec.SetHostnameAsFQDN, p.Spec.Subdomain, p.Spec.Hostname = new(true), "s", strings.Repeat("h", 36)
		}, strings.Repeat("h", 36) + ".s.default.svc.cluster.local"},
		"65 is too long": {
			func(p *corev1.Pod) {
				p.Spec.SetHostnameAsFQDN, p.Spec.Subdomain, p.Spec.Hostname = new(true), "s", strings.Repeat("h", 37)
			},
			"!failed to construct FQDN from pod hostname and cluster domain, FQDN " + strings.Repeat("h", 37) +
				".s.default.svc.cluster.local is too long (64 characters is the max, 65 characters requested)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newBuilder(t).Sandbox(podactor.SandboxSpecRequest{Pod: simplePod(tc.change)})
			if part, isError := strings.CutPrefix(tc.want, "!"); isError {
				if err == nil || !strings.HasPrefix(err.Error(), part) || reasoned.Reason(err, "") != "FailedCreatePodSandBox" {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || got.Hostname != tc.want {
				t.Errorf("%q, %v; want %q", got.Hostname, err, tc.want)
			}
		})
	}
}

func TestDNS(t *testing.T) {
	host := runtime.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"example.org"}, Options: []string{"rotate"}}
	cluster := runtime.DNSConfig{
		Servers:  []string{"10.96.0.10"},
		Searches: []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.org"},
		Options:  []string{"ndots:5"},
	}
	policy := func(p corev1.DNSPolicy) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.DNSPolicy = p } }
	onHost := func(p corev1.DNSPolicy) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.DNSPolicy, pod.Spec.HostNetwork = p, true }
	}
	noCluster := func(c *Config) { c.ClusterDNS = nil }
	for name, tc := range map[string]struct {
		pod    func(*corev1.Pod)
		config func(*Config)
		want   runtime.DNSConfig
	}{
		"cluster first":               {policy(corev1.DNSClusterFirst), nil, cluster},
		"host":                        {policy(corev1.DNSDefault), nil, host},
		"cluster first, host network": {onHost(corev1.DNSClusterFirst), nil, host},
		"with host net":               {onHost(corev1.DNSClusterFirstWithHostNet), nil, cluster},
		"no cluster DNS":              {policy(corev1.DNSClusterFirst), noCluster, host},
		"runtime's own":               {policy(corev1.DNSDefault), func(c *Config) { c.HostDNS = nil }, runtime.DNSConfig{}},
		"no domain": {policy(corev1.DNSClusterFirst), func(c *Config) { c.ClusterDomain = "" },
			runtime.DNSConfig{Servers: cluster.Servers, Searches: []string{"example.org"}, Options: cluster.Options}},
		"none": {
			func(p *corev1.Pod) {
				p.Spec.DNSPolicy = corev1.DNSNone
				p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"a", "b", "c", "d"}, Searches: []string{"x", "x"}}
			}, nil,
			runtime.DNSConfig{Servers: []string{"a", "b", "c"}, Searches: []string{"x"}},
		},
		"searches that are too long": {
			func(p *corev1.Pod) {
				p.Spec.DNSPolicy = corev1.DNSNone
				p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"a"}, Searches: []string{"x", strings.Repeat("a", 254), "y"}}
			}, nil,
			runtime.DNSConfig{Servers: []string{"a"}, Searches: []string{"x", "y"}},
		},
		"too many searches": {
			func(p *corev1.Pod) {
				p.Spec.DNSPolicy = corev1.DNSNone
				p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"a"}, Searches: searches(33, 10)}
			}, nil,
			runtime.DNSConfig{Servers: []string{"a"}, Searches: searches(32, 10)},
		},
		"too many characters": {
			func(p *corev1.Pod) {
				p.Spec.DNSPolicy = corev1.DNSNone
				p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"a"}, Searches: searches(10, 250)}
			}, nil,
			runtime.DNSConfig{Servers: []string{"a"}, Searches: searches(8, 250)},
		},
		"the node itself": {
			policy(corev1.DNSDefault), func(c *Config) { c.HostDNS, c.LocalDNS = nil, true },
			runtime.DNSConfig{Servers: []string{"127.0.0.1", "::1"}, Searches: []string{"."}},
		},
		"the node itself, cluster first": {
			policy(corev1.DNSClusterFirst), func(c *Config) { c.HostDNS, c.LocalDNS = nil, true },
			runtime.DNSConfig{Servers: cluster.Servers, Searches: cluster.Searches[:3], Options: cluster.Options},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t, func(c *Config) {
				if tc.config != nil {
					tc.config(c)
				}
			})
			got, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: simplePod(tc.pod)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.DNS); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	broken := newBuilder(t, func(c *Config) {
		c.HostDNS = func() (runtime.DNSConfig, error) { return host, errors.New("no resolv.conf") }
	})
	if _, err := broken.Sandbox(podactor.SandboxSpecRequest{Pod: simplePod()}); err == nil || !strings.Contains(err.Error(), "no resolv.conf") {
		t.Errorf("error %v", err)
	}
}

// searches are n different domains of that length.
func searches(n, length int) []string {
	var out []string
	for i := range n {
		out = append(out, strings.Repeat(string(rune('a'+i)), length))
	}
	return out
}

// TestDNSWarnings: what is left out is told.
func TestDNSWarnings(t *testing.T) {
	own := func(c corev1.PodDNSConfig) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.DNSPolicy, p.Spec.DNSConfig = corev1.DNSNone, &c }
	}
	for want, tc := range map[string]struct {
		pod    func(*corev1.Pod)
		config func(*Config)
	}{
		"": {func(*corev1.Pod) {}, func(*Config) {}},
		"DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1 2 3": {
			own(corev1.PodDNSConfig{Nameservers: []string{"1", "2", "3", "4"}}), func(*Config) {},
		},
		"DNSConfigForming: Search Line limits were exceeded, some search paths have been omitted, the applied search line is: x": {
			own(corev1.PodDNSConfig{Searches: []string{"x", strings.Repeat("y", 300)}}), func(*Config) {},
		},
		`MissingClusterDNS: pod: "web_default(0a1b-2c3d)". kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`: {
			func(*corev1.Pod) {}, func(c *Config) { c.ClusterDNS = nil },
		},
	} {
		var got []string
		tell := func(e lifecycle.Event) {
			if e.Type == lifecycle.EventWarning {
				got = append(got, e.Reason+": "+e.Message)
			}
		}
		b := newBuilder(t, tc.config)
		if _, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: simplePod(tc.pod), Tell: tell}); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}

func TestParseResolvConf(t *testing.T) {
	got, err := ParseResolvConf(strings.NewReader("# head\nnameserver 1.1.1.1 # one\nnameserver fd00::1\n;nameserver 9.9.9.9\n" +
		"domain old.test\nsearch a.test. b.test .\noptions ndots:2 rotate\nnameserver\noptions edns0\n"))
	want := runtime.DNSConfig{
		Servers: []string{"1.1.1.1", "fd00::1"}, Searches: []string{"a.test", "b.test", "."}, Options: []string{"ndots:2", "rotate", "edns0"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestNonRoot(t *testing.T) {
	user := func(uid *int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: uid}
		}
	}
	for name, tc := range map[string]struct {
		pod       func(*corev1.Pod)
		imageUser string
		want      string // part of the error; empty: fine
	}{
		"spec's user":        {user(new(int64(1))), "", ""},
		"spec's root":        {user(new(int64(0))), "1000", `container's runAsUser breaks non-root policy (pod: "web_default(0a1b-2c3d)", container: main)`},
		"image's number":     {user(nil), "1000", ""},
		"with group":         {user(nil), "1000:0", ""},
		"image's root":       {user(nil), "0", "image will run as root"},
		"image says nothing": {user(nil), "", "image will run as root"},
		"a name":             {user(nil), "www:www", "non-numeric user (www:www)"},
		"container allows": {func(p *corev1.Pod) {
			user(nil)(p)
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: new(false)}
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: simplePod(tc.pod), Container: "main", ImageUser: tc.imageUser})
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || reasoned.Reason(err, "") != "CreateContainerConfigError" {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestGroupWithoutUserNamesTheImagesUser(t *testing.T) {
	pod := simplePod(func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsGroup = new(int64(7)) })
	for imageUser, want := range map[string]runtime.ContainerSecurity{
		"":       {RunAsUser: new(int64(0))},
		"5:6":    {RunAsUser: new(int64(5))},
		"www:ww": {RunAsUserName: "www"},
	} {
		got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: pod, Container: "main", ImageUser: imageUser})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.RunAsUser, got.Security.RunAsUser); diff != "" || got.Security.RunAsUserName != want.RunAsUserName {
			t.Errorf("%q: user %v %q", imageUser, got.Security.RunAsUser, got.Security.RunAsUserName)
		}
	}
}

func TestSeccompDefault(t *testing.T) {
	on := newBuilder(t, func(c *Config) { c.SeccompDefault = true })
	unconfined := func(p *corev1.Pod) {
		p.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}
	for _, tc := range []struct {
		pod  *corev1.Pod
		want runtime.ProfileType
	}{{simplePod(), runtime.ProfileRuntimeDefault}, {simplePod(unconfined), runtime.ProfileUnconfined}} {
		got, err := on.Container(podactor.ContainerSpecRequest{Pod: tc.pod, Container: "main"})
		if err != nil || got.Security.Seccomp.Type != tc.want {
			t.Errorf("%v, %v; want %s", got.Security.Seccomp, err, tc.want)
		}
	}
}

func TestAppArmor(t *testing.T) {
	const key = "container.apparmor.security.beta.kubernetes.io/main"
	note := func(text string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Annotations[key] = text } }
	podField := func(p *corev1.Pod) {
		p.Spec.SecurityContext.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	ownField := func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("own")},
		}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want *runtime.Profile
	}{
		"nothing":                     {simplePod(), nil},
		"annotation, default":         {simplePod(note("runtime/default")), &runtime.Profile{Type: "RuntimeDefault"}},
		"annotation, unconfined":      {simplePod(note("unconfined")), &runtime.Profile{Type: "Unconfined"}},
		"annotation, localhost":       {simplePod(note("localhost/a/b")), &runtime.Profile{Type: "Localhost", LocalhostRef: "a/b"}},
		"annotation over pod's field": {simplePod(podField, note("runtime/default")), &runtime.Profile{Type: "RuntimeDefault"}},
		"own field over all":          {simplePod(podField, note("runtime/default"), ownField), &runtime.Profile{Type: "Localhost", LocalhostRef: "own"}},
		"pod's field":                 {simplePod(podField), &runtime.Profile{Type: "Unconfined"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			if err := b.Check(tc.pod); err != nil {
				t.Error(err)
			}
			got, err := b.Container(podactor.ContainerSpecRequest{Pod: tc.pod, Container: "main"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Security.AppArmor); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSysctls(t *testing.T) {
	for _, tc := range []struct {
		name  string
		host  func(*corev1.Pod)
		allow []string
		want  string // part of the refusal; empty: allowed
	}{
		{name: "net.ipv4.tcp_syncookies"},
		{name: "net/ipv4/tcp_syncookies"},
		{name: "net.core.somaxconn", want: "not allowlisted"},
		{name: "net.core.somaxconn", allow: []string{"net.core.*"}},
		{name: "net/core/somaxconn", allow: []string{"net.core.somaxconn"}},
		{name: "net.core.somaxconn2", allow: []string{"net.core.somaxconn"}, want: "not allowlisted"},
		{name: "kernel.msgmax", allow: []string{"kernel.msg*"}},
		{name: "kernel.msgmax", allow: []string{"kernel.msg*"}, host: func(p *corev1.Pod) { p.Spec.HostIPC = true }, want: `"kernel.msgmax" not allowed with host IPC enabled`},
		{name: "net.ipv4.tcp_syncookies", host: func(p *corev1.Pod) { p.Spec.HostNetwork = true }, want: `"net.ipv4.tcp_syncookies" not allowed with host Net enabled`},
		{name: "vm.swappiness", want: "not allowlisted"},
	} {
		pod := simplePod(func(p *corev1.Pod) {
			p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: tc.name, Value: "1"}}
			if tc.host != nil {
				tc.host(p)
			}
		})
		err := newBuilder(t, func(c *Config) { c.AllowedUnsafeSysctls = tc.allow }).Check(pod)
		if tc.want == "" && err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "forbidden sysctl: ") ||
			!strings.Contains(err.Error(), tc.want) || reasoned.Reason(err, "") != "SysctlForbidden") {
			t.Errorf("%s: error %v, want %q in it", tc.name, err, tc.want)
		}
	}
	for in, want := range map[string]string{
		"net/ipv4/conf/eth0.1/forwarding": "net.ipv4.conf.eth0/1.forwarding", "net.ipv4.conf.eth0/1.forwarding": "net.ipv4.conf.eth0/1.forwarding",
		"single": "single",
	} {
		if got := dotted(in); got != want {
			t.Errorf("dotted(%s) = %s", in, got)
		}
	}
}

func TestCheckLooksAtValues(t *testing.T) {
	container := func(change func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(&p.Spec.Containers[0]) }
	}
	secured := func(sc corev1.SecurityContext) func(*corev1.Pod) {
		return container(func(c *corev1.Container) { c.SecurityContext = &sc })
	}
	mounted := func(m corev1.VolumeMount) func(*corev1.Pod) {
		return container(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{m} })
	}
	for want, change := range map[string]func(*corev1.Pod){
		"":                                       func(*corev1.Pod) {},
		"metadata.uid: ":                         func(p *corev1.Pod) { p.UID = "../../etc" },
		"metadata.namespace: ":                   func(p *corev1.Pod) { p.Namespace = "" },
		"spec.hostUsers: false does not go with": func(p *corev1.Pod) { p.Spec.HostUsers, p.Spec.HostPID = new(false), true },
		"spec.dnsConfig.nameservers: ":           func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSNone },
		"spec.dnsPolicy: ":                       func(p *corev1.Pod) { p.Spec.DNSPolicy = "Other" },
		"spec.securityContext.seccompProfile: ": func(p *corev1.Pod) {
			p.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("../x")}
		},
		"spec.containers[0].securityContext.procMount: ":        secured(corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}),
		"spec.containers[0].volumeMounts[0].mountPropagation: ": mounted(corev1.VolumeMount{MountPropagation: new(corev1.MountPropagationBidirectional)}),
		"spec.containers[0].resources.limits[nvidia.com/gpu]: ": container(func(c *corev1.Container) {
			c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("1")}
		}),
		"spec.containers[0].livenessProbe.httpGet.protocol: the feature gate H2CContainerProbe": container(func(c *corev1.Container) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Protocol: new(corev1.HTTPProtocolHTTP2)}}}
		}),
		"spec.containers[0].startupProbe.grpc.mode: the feature gate GRPCContainerProbeTLS": container(func(c *corev1.Container) {
			c.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Mode: new(corev1.GRPCProbeModeTLS)}}}
		}),
		"spec.containers[0].env[1].valueFrom.fileKeyRef: the feature gate EnvFiles": container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{Key: "k"}}}}
		}),
		"spec.containers[0].lifecycle.stopSignal: the feature gate ContainerStopSignals": container(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{StopSignal: new(corev1.SIGUSR1)}
		}),
		"spec.ephemeralContainers[0].resources.claims: ": func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "e", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "d"}}},
			}}}
		},
		"spec.ephemeralContainers[0].securityContext.seccompProfile: ": func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "e", SecurityContext: &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "x"}},
			}}}
		},
		"spec.volumes[0].emptyDir.mode: the feature gate EmptyDirVolumeMode is off": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Mode: new(int32(0o700))}}}}
		},
		"spec.volumes[0].secret.items[1].user: the feature gate AtomicWriteVolumeUserFields is off": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				Items: []corev1.KeyToPath{{Key: "a", Path: "a"}, {Key: "b", Path: "b", User: new(int64(7))}}}}}}
		},
		"spec.resources: ": func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{} },
	} {
		t.Run(want, func(t *testing.T) {
			err := newBuilder(t, func(c *Config) { c.EnvFiles = false }).Check(simplePod(change))
			if want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "; ") {
				t.Fatalf("error %v", err)
			}
			if !reasoned.Fatal(err) || reasoned.Reason(err, "") == "" {
				t.Error("the refusal has no reason or may be tried again")
			}
		})
	}
}

// TestRestartGates: without their gates no pod runs by another restart policy
// than it asks for; sidecars need none of them.
func TestRestartGates(t *testing.T) {
	const rules, all = "the feature gate ContainerRestartRules is off", "the feature gate RestartAllContainersOnContainerExits is off"
	rule := func(action corev1.ContainerRestartRuleAction) []corev1.ContainerRestartRule {
		return []corev1.ContainerRestartRule{{Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42},
		}}}
	}
	never := new(corev1.ContainerRestartPolicyNever)
	pod := simplePod(func(p *corev1.Pod) {
		c := p.Spec.Containers[0]
		p.Spec.InitContainers = []corev1.Container{c, c}
		p.Spec.InitContainers[0].Name, p.Spec.InitContainers[0].RestartPolicy = "sidecar", new(corev1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers[1].Name, p.Spec.InitContainers[1].RestartPolicy = "once", never
		p.Spec.Containers[0].RestartPolicy = never
		p.Spec.Containers[0].RestartPolicyRules = append(rule(corev1.ContainerRestartRuleActionRestart), rule(corev1.ContainerRestartRuleActionRestartAllContainers)...)
	})
	for want, change := range map[string]func(*Config){
		"": func(*Config) {},
		"spec.containers[0].restartPolicyRules[1].action: " + all: func(c *Config) { c.RestartAllContainers = false },
		"spec.initContainers[1].restartPolicy: " + rules + "; spec.containers[0].restartPolicy: " + rules +
			"; spec.containers[0].restartPolicyRules[0]: " + rules + "; spec.containers[0].restartPolicyRules[1]: " + rules: func(c *Config) { c.RestartRules, c.RestartAllContainers = false, false },
	} {
		got := ""
		if err := newBuilder(t, change).Check(pod); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestCheckNamesAllAtOnce(t *testing.T) {
	pod := simplePod(func(p *corev1.Pod) {
		p.Spec.HostUsers, p.Spec.HostIPC = new(false), true
		p.Spec.Resources = &corev1.ResourceRequirements{}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "d"}}
	})
	err := newBuilder(t).Check(pod)
	want := "spec.containers[0].resources.claims: not acted on yet by this agent; " +
		"spec.resources: not acted on yet by this agent; spec.hostUsers: false does not go with hostNetwork, hostPID or hostIPC"
	if err == nil || err.Error() != want || reasoned.Reason(err, "") != "UnsupportedField" {
		t.Errorf("error %v", err)
	}
}

// TestStockRefusals: what the stock kubelet refuses as well has its reason and
// its words, and nothing else beside.
func TestStockRefusals(t *testing.T) {
	profile := func(p corev1.AppArmorProfile) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AppArmorProfile: &p}
		}
	}
	for name, tc := range map[string]struct {
		change        func(*corev1.Pod)
		node          func(*Config)
		reason, words string
	}{
		"os": {
			func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, nil,
			"PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS",
		},
		"groups": {
			func(p *corev1.Pod) {
				p.Spec.SecurityContext.SupplementalGroupsPolicy = new(corev1.SupplementalGroupsPolicyStrict)
			}, nil,
			"SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=Strict is not supported in this node",
		},
		"no AppArmor": {
			profile(corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}), func(c *Config) { c.AppArmor = false },
			"AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host",
		},
		"no AppArmor, unconfined": {
			profile(corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}), func(c *Config) { c.AppArmor = false }, "", "",
		},
		"empty profile": {
			profile(corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost}), nil,
			"AppArmor", "Cannot enforce AppArmor: invalid empty AppArmor profile name: a Localhost profile must be named",
		},
		"annotation": {
			func(p *corev1.Pod) { p.Annotations["container.apparmor.security.beta.kubernetes.io/main"] = "complain" }, nil,
			"AppArmor", `Cannot enforce AppArmor: AppArmor annotation "complain": must be runtime/default, unconfined or localhost/NAME`,
		},
		"sysctl": {
			func(p *corev1.Pod) {
				p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax"}}
				p.Spec.Containers[0].LivenessProbe = &corev1.Probe{} // ours alone
			}, nil,
			"SysctlForbidden", `forbidden sysctl: "kernel.msgmax" not allowlisted`,
		},
		"old kernel": {
			func(p *corev1.Pod) { p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.tcp_rmem"}} },
			func(c *Config) { c.Kernel = "4.14.0-1" },
			"SysctlForbidden", `forbidden sysctl: "net.ipv4.tcp_rmem" not allowlisted`,
		},
		"new kernel": {
			func(p *corev1.Pod) { p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.tcp_rmem"}} },
			func(c *Config) { c.Kernel = "6.1.0-18-amd64" }, "", "",
		},
		"users of the node": {
			func(p *corev1.Pod) {
				p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "user.max_user_namespaces"}}
			},
			func(c *Config) { c.AllowedUnsafeSysctls = []string{"user.*"} },
			"SysctlForbidden", `forbidden sysctl: "user.max_user_namespaces" not allowed with host User enabled`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := newBuilder(t, func(c *Config) {
				if tc.node != nil {
					tc.node(c)
				}
			}).Check(simplePod(tc.change))
			if tc.reason == "" && err == nil {
				return
			}
			if err == nil || err.Error() != tc.words || reasoned.Reason(err, "") != tc.reason || !reasoned.Fatal(err) {
				t.Errorf("%v (%s)", err, reasoned.Reason(err, ""))
			}
		})
	}
}

func TestHostAliasesNeedManagedHosts(t *testing.T) {
	aliases := func(p *corev1.Pod) {
		p.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"a", "b"}}}
	}
	onHost := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	unmanaged := newBuilder(t, func(c *Config) { c.ManageHosts = false })
	noNode := newBuilder(t, func(c *Config) { c.NodeHosts = nil })
	for _, tc := range []struct {
		b    *Builder
		pod  *corev1.Pod
		fine bool
	}{
		{unmanaged, simplePod(aliases), false},
		{noNode, simplePod(aliases), true},
		{noNode, simplePod(aliases, onHost), false},
		{newBuilder(t), simplePod(aliases, onHost), true},
	} {
		if err := tc.b.Check(tc.pod); (err == nil) != tc.fine {
			t.Errorf("hostNetwork %v: %v", tc.pod.Spec.HostNetwork, err)
		}
	}
}

func TestHostsFile(t *testing.T) {
	const nodes = "# Kubernetes-managed hosts file (host network).\n"
	const own = "# Kubernetes-managed hosts file.\n" +
		"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::\tip6-localnet\nfe00::\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	aliases := func(p *corev1.Pod) {
		p.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"a", "b"}}}
	}
	onHost := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		config func(*Config)
		want   string // empty: no file
	}{
		"plain":                 {simplePod(), nil, own + "10.1.0.7\tweb\nfd00::7\tweb\n"},
		"subdomain":             {simplePod(func(p *corev1.Pod) { p.Spec.Subdomain = "s" }), nil, own + "10.1.0.7\tweb.s.default.svc.cluster.local\tweb\nfd00::7\tweb.s.default.svc.cluster.local\tweb\n"},
		"override":              {simplePod(func(p *corev1.Pod) { p.Spec.HostnameOverride = new("o.x") }), nil, own + "10.1.0.7\to.x\nfd00::7\to.x\n"},
		"aliases":               {simplePod(aliases), nil, own + "10.1.0.7\tweb\nfd00::7\tweb\n192.0.2.7\ta\tb\n"},
		"host network":          {simplePod(onHost), nil, ""},
		"host network, aliases": {simplePod(onHost, aliases), nil, nodes + "127.0.0.1\tlocalhost\n192.0.2.7\ta\tb\n"},
		"no newline at the end": {simplePod(onHost, aliases), func(c *Config) { c.NodeHosts = func() ([]byte, error) { return []byte("x"), nil } }, nodes + "x\n192.0.2.7\ta\tb\n"},
		"not managed":           {simplePod(), func(c *Config) { c.ManageHosts = false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t, func(c *Config) {
				if tc.config != nil {
					tc.config(c)
				}
			})
			path, content, ok, err := b.HostsFile(tc.pod, []string{"10.1.0.7", "fd00::7"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(content)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			container, err := b.Container(podactor.ContainerSpecRequest{Pod: tc.pod, Container: "main"})
			if err != nil {
				t.Fatal(err)
			}
			mounted := len(container.Mounts) == 1 && container.Mounts[0].HostPath == path && container.Mounts[0].ContainerPath == "/etc/hosts"
			if ok != (tc.want != "") || mounted != ok {
				t.Errorf("ok %v, mounts %v", ok, container.Mounts)
			}
		})
	}
}

func TestAVolumeOverEtcHostsStays(t *testing.T) {
	own := runtime.Mount{HostPath: "/v/hosts", ContainerPath: "/etc/hosts/"}
	got, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: simplePod(), Container: "main", Mounts: []runtime.Mount{own}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]runtime.Mount{own}, got.Mounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPortMappingsOfSidecars(t *testing.T) {
	port := func(name string, n int32) corev1.Container {
		return corev1.Container{Name: name, Ports: []corev1.ContainerPort{{ContainerPort: n, HostPort: n}}}
	}
	pod := simplePod(func(p *corev1.Pod) {
		side := port("side", 1)
		side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = []corev1.Container{port("init", 9), side}
		p.Spec.Containers = []corev1.Container{port("main", 2)}
	})
	got, err := newBuilder(t).Sandbox(podactor.SandboxSpecRequest{Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	want := []runtime.PortMapping{{Protocol: "TCP", ContainerPort: 1, HostPort: 1}, {Protocol: "TCP", ContainerPort: 2, HostPort: 2}}
	if diff := cmp.Diff(want, got.PortMappings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSystemdParent(t *testing.T) {
	b := newBuilder(t, func(c *Config) { c.Cgroups.Driver = resources.Systemd })
	got, err := b.Sandbox(podactor.SandboxSpecRequest{Pod: simplePod()})
	if err != nil || got.CgroupParent != "kubepods-besteffort-pod0a1b_2c3d.slice" {
		t.Errorf("%s, %v", got.CgroupParent, err)
	}
}

func TestUnknownContainer(t *testing.T) {
	_, err := newBuilder(t).Container(podactor.ContainerSpecRequest{Pod: simplePod(), Container: "nope"})
	if err == nil || !strings.Contains(err.Error(), `no container "nope"`) {
		t.Errorf("error %v", err)
	}
}
