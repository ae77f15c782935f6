package cri

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func plainSandbox() runtime.SandboxConfig {
	return runtime.SandboxConfig{Name: "pod", Namespace: "ns", UID: "u1"}
}

func plainContainer() runtime.ContainerConfig {
	return runtime.ContainerConfig{Name: "c", Image: runtime.Image{Ref: "sha256:1"}}
}

// fullSandbox sets every field to something that is not its default.
func fullSandbox() runtime.SandboxConfig {
	return runtime.SandboxConfig{
		Name: "pod", Namespace: "ns", UID: "u1", Attempt: 3, RuntimeHandler: "kata", Hostname: "h", LogDirectory: "/logs",
		DNS:          runtime.DNSConfig{Servers: []string{"1.1.1.1"}, Searches: []string{"a"}, Options: []string{"ndots:5"}},
		PortMappings: []runtime.PortMapping{{Protocol: "UDP", ContainerPort: 1, HostPort: 2, HostIP: "127.0.0.1"}},
		Labels:       map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
		CgroupParent: "/pod", Sysctls: map[string]string{"kernel.x": "1"},
		Security: runtime.SandboxSecurity{
			Namespaces: fullNamespaces(), SELinux: fullSELinux(), RunAsUser: new(int64(1)), RunAsGroup: new(int64(2)),
			ReadonlyRootfs: true, SupplementalGroups: []int64{3}, SupplementalGroupsPolicy: "Strict", Privileged: true,
			Seccomp: fullProfile(), AppArmor: fullProfile(),
		},
		Overhead: fullResources(), Resources: fullResources(),
	}
}

func fullContainer() runtime.ContainerConfig {
	return runtime.ContainerConfig{
		Name: "c", Attempt: 4, Image: runtime.Image{Ref: "sha256:1", Requested: "busybox:1", RuntimeHandler: "kata"},
		Command: []string{"sh"}, Args: []string{"-c"}, WorkingDir: "/w", Env: []runtime.EnvVar{{Name: "A", Value: "1"}},
		Mounts:  []runtime.Mount{{HostPath: "/h", Image: runtime.Image{Ref: "sha256:2", Requested: "r:2", RuntimeHandler: "kata"}, ImageSubPath: "s", ContainerPath: "/c", ReadOnly: true, SELinuxRelabel: true, Propagation: runtime.PropagationBidirectional}},
		Devices: []runtime.Device{{HostPath: "/dev/h", ContainerPath: "/dev/c", Permissions: "rw"}},
		Labels:  map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, LogPath: "c.log",
		Stdin: true, StdinOnce: true, TTY: true, Resources: *fullResources(),
		Security: runtime.ContainerSecurity{
			AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"}, Privileged: true,
			Namespaces: fullNamespaces(), SELinux: fullSELinux(), RunAsUser: new(int64(1)), RunAsGroup: new(int64(2)), RunAsUserName: "u",
			ReadonlyRootfs: true, SupplementalGroups: []int64{3}, SupplementalGroupsPolicy: "Strict", NoNewPrivileges: true,
			MaskedPaths: []string{"/proc/x"}, ReadonlyPaths: []string{"/proc/y"}, Seccomp: fullProfile(), AppArmor: fullProfile(),
		},
		StopSignal: "SIGRTMIN+3",
	}
}

func fullNamespaces() runtime.Namespaces {
	return runtime.Namespaces{Network: runtime.NamespaceNode, PID: runtime.NamespaceTarget, IPC: runtime.NamespaceNode, TargetID: "t", User: fullUser()}
}

func fullUser() *runtime.UserNamespace {
	return &runtime.UserNamespace{
		UIDs: []runtime.IDMapping{{HostID: 65536, ContainerID: 1, Length: 2}},
		GIDs: []runtime.IDMapping{{HostID: 131072, ContainerID: 3, Length: 4}},
	}
}

func fullSELinux() *runtime.SELinuxOptions {
	return &runtime.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "l"}
}

func fullProfile() *runtime.Profile {
	return &runtime.Profile{Type: runtime.ProfileLocalhost, LocalhostRef: "p"}
}

func fullResources() *runtime.Resources {
	return &runtime.Resources{
		CPUPeriod: 1, CPUQuota: 2, CPUShares: 3, Memory: 4, MemorySwap: 5, OOMScoreAdj: 6, CpusetCPUs: "0", CpusetMems: "1",
		HugepageLimits: map[string]uint64{"2MB": 7, "1GB": 8}, Unified: map[string]string{"memory.high": "9"},
	}
}

// TestEveryFieldReachesTheRuntime clears each field in turn: the request must
// then be another one, or be refused.
func TestEveryFieldReachesTheRuntime(t *testing.T) {
	sandbox := func(cfg runtime.SandboxConfig) (proto.Message, error) {
		s, err := sandboxConfig(cfg)
		return &runtimeapi.RunPodSandboxRequest{Config: s, RuntimeHandler: cfg.RuntimeHandler}, err
	}
	eachCleared(t, fullSandbox, sandbox)
	container := func(cfg runtime.ContainerConfig) (proto.Message, error) { return containerConfig(cfg) }
	eachCleared(t, fullContainer, container)
	recursive := func() runtime.ContainerConfig {
		cfg := plainContainer()
		cfg.Mounts = []runtime.Mount{{HostPath: "/h", ContainerPath: "/c", ReadOnly: true, RecursiveReadOnly: true}}
		return cfg
	}
	with, _ := container(recursive())
	cfg := recursive()
	cfg.Mounts[0].RecursiveReadOnly = false
	if without, _ := container(cfg); proto.Equal(with, without) {
		t.Error("Mounts[0].RecursiveReadOnly does not reach the runtime")
	}
}

func eachCleared[C any](t *testing.T, full func() C, convert func(C) (proto.Message, error)) {
	t.Helper()
	want, err := convert(full())
	if err != nil {
		t.Fatal(err)
	}
	cfg := full()
	leaves := 0
	walk(reflect.ValueOf(&cfg).Elem(), fmt.Sprintf("%T", cfg), func(path string, field reflect.Value) {
		before := reflect.New(field.Type()).Elem()
		before.Set(field)
		if field.IsZero() {
			if !strings.HasSuffix(path, ".RecursiveReadOnly") { // excludes Bidirectional; tested apart
				t.Errorf("%s is not set by the test", path)
			}
			return
		}
		leaves++
		field.SetZero()
		if got, err := convert(cfg); err == nil && proto.Equal(got, want) {
			t.Errorf("%s does not reach the runtime", path)
		}
		field.Set(before)
	})
	if leaves < 20 {
		t.Errorf("%T: only %d fields were looked at", cfg, leaves)
	}
}

// walk visits every field that is not a struct.
func walk(v reflect.Value, path string, visit func(string, reflect.Value)) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && !v.IsNil():
		visit(path, v)
		walk(v.Elem(), path, visit)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && v.Len() > 0:
		visit(path, v)
		walk(v.Index(0), path+"[0]", visit)
	default:
		visit(path, v)
	}
}

func TestEmptyDNSIsTheHosts(t *testing.T) {
	s, err := sandboxConfig(plainSandbox())
	if err != nil || s.DnsConfig != nil {
		t.Errorf("DnsConfig = %v, %v; want nil", s.GetDnsConfig(), err)
	}
}

func TestDefaultsShareLittle(t *testing.T) {
	s, err := containerSecurity(runtime.ContainerSecurity{})
	if err != nil {
		t.Fatal(err)
	}
	ns := s.NamespaceOptions
	if ns.Network != runtimeapi.NamespaceMode_POD || ns.Ipc != runtimeapi.NamespaceMode_POD || ns.Pid != runtimeapi.NamespaceMode_CONTAINER {
		t.Errorf("namespaces of an empty configuration: %v", ns)
	}
	if s.Seccomp != nil || s.Apparmor != nil || len(s.Capabilities.AddAmbientCapabilities) != 0 {
		t.Errorf("profiles or ambient capabilities of an empty configuration: %v", s)
	}
}

func TestEqualConfigurationsGiveEqualMessages(t *testing.T) {
	for range 20 {
		if a, b := resources(*fullResources()), resources(*fullResources()); a.HugepageLimits[0].PageSize != b.HugepageLimits[0].PageSize {
			t.Fatal("the order of huge page sizes is left to chance")
		}
	}
}

func TestRefusedConfigurations(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*runtime.ContainerConfig)
		want   string
	}{
		{"signal", func(c *runtime.ContainerConfig) { c.StopSignal = "SIGFOO" }, `stop signal "SIGFOO" is not known`},
		{"bare signal", func(c *runtime.ContainerConfig) { c.StopSignal = "RUNTIME_DEFAULT" }, `stop signal "RUNTIME_DEFAULT" is not known`},
		{"propagation", func(c *runtime.ContainerConfig) { c.Mounts = []runtime.Mount{{ContainerPath: "/c", Propagation: "x"}} }, `mount /c: propagation "x" is not known`},
		{"rro rw", func(c *runtime.ContainerConfig) {
			c.Mounts = []runtime.Mount{{ContainerPath: "/c", RecursiveReadOnly: true}}
		}, "mount /c: recursively read-only needs read-only"},
		{"namespace", func(c *runtime.ContainerConfig) { c.Security.Namespaces.IPC = "x" }, `IPC namespace: mode "x" is not known`},
		{"groups", func(c *runtime.ContainerConfig) { c.Security.SupplementalGroupsPolicy = "x" }, `supplemental groups policy "x"`},
		{"seccomp type", func(c *runtime.ContainerConfig) { c.Security.Seccomp = &runtime.Profile{Type: "x"} }, `seccomp profile: type "x" is not known`},
		{"apparmor name", func(c *runtime.ContainerConfig) {
			c.Security.AppArmor = &runtime.Profile{Type: runtime.ProfileLocalhost}
		}, "AppArmor profile: type Localhost without a name"},
	} {
		cfg := plainContainer()
		tt.change(&cfg)
		if _, err := containerConfig(cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q in it", tt.name, err, tt.want)
		}
	}
	sandbox := plainSandbox()
	sandbox.PortMappings = []runtime.PortMapping{{Protocol: "ICMP", ContainerPort: 1}}
	if _, err := sandboxConfig(sandbox); err == nil || !strings.Contains(err.Error(), `protocol "ICMP"`) {
		t.Errorf("protocol: %v", err)
	}
}

func TestStopSignals(t *testing.T) {
	for name, want := range map[string]runtimeapi.Signal{
		"": runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT, "SIGTERM": runtimeapi.Signal_SIGNAL_SIGTERM,
		"SIGRTMIN": runtimeapi.Signal_SIGNAL_SIGRTMIN, "SIGRTMIN+15": runtimeapi.Signal_SIGNAL_SIGRTMINPLUS15,
		"SIGRTMAX-1": runtimeapi.Signal_SIGNAL_SIGRTMAXMINUS1,
	} {
		if got, err := stopSignal(name); err != nil || got != want {
			t.Errorf("stopSignal(%q) = %v, %v; want %v", name, got, err, want)
		}
	}
}

func TestSecondsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{-time.Second: 0, 0: 0, 1: 1, time.Second: 1, 1500 * time.Millisecond: 2} {
		if got := seconds(d); got != want {
			t.Errorf("seconds(%v) = %d, want %d", d, got, want)
		}
	}
}

func TestImageMounts(t *testing.T) {
	for version, want := range map[string]string{
		"2.1.0": "", "v2.4.2": "", "v3.0.0": "", "unknown": "",
		"1.6.20~ds1": "containerd 1.6.20~ds1 can not mount images: image volumes need containerd 2.1",
		"v2.0.5":     "containerd v2.0.5 can not mount images",
	} {
		f := newFake()
		f.answer("Version", &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: version, RuntimeApiVersion: "v1"})
		f.answer("CreateContainer", &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
		cfg := plainContainer()
		cfg.Mounts = []runtime.Mount{{Image: runtime.Image{Ref: "sha256:1", Requested: "models:1"}, ImageSubPath: "a/b", ContainerPath: "/c", ReadOnly: true}}
		id, err := start(t, f).CreateContainer(t.Context(), "s", cfg, plainSandbox())
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", version, err)
			}
			continue
		}
		sent := f.requests["CreateContainer"].(*runtimeapi.CreateContainerRequest).GetConfig().GetMounts()[0]
		if err != nil || id != "c1" || sent.GetImage().GetImage() != "sha256:1" || sent.GetImage().GetUserSpecifiedImage() != "models:1" ||
			sent.GetImageSubPath() != "a/b" || sent.GetHostPath() != "" {
			t.Errorf("%s: %v, sent %v", version, err, sent)
		}
	}
}

func TestConfinementThatTheRuntimeLacksIsRefused(t *testing.T) {
	recursive := []runtime.Mount{{HostPath: "/h", ContainerPath: "/c", ReadOnly: true, RecursiveReadOnly: true}}
	can := &runtimeapi.StatusResponse{
		Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{
			{Name: ""}, {Name: "new", Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true}},
		},
	}
	for _, tt := range []struct {
		name    string
		answer  any
		handler string
		mounts  []runtime.Mount
		groups  string
		user    *runtime.UserNamespace
		want    string
	}{
		{"nothing asked, nothing known", status.Error(codes.Internal, "broken"), "", nil, "Merge", nil, ""},
		{"old runtime, mount", &runtimeapi.StatusResponse{}, "", recursive, "", nil, `mount /c: rpc error: code = FailedPrecondition desc = the runtime handler "" does not support`},
		{"old runtime, groups", &runtimeapi.StatusResponse{}, "", nil, "Strict", nil, "does not support the supplemental groups policy Strict"},
		{"other handler", can, "", recursive, "", nil, "does not support recursively read-only mounts"},
		{"new runtime", can, "new", recursive, "Strict", nil, ""},
		{"status fails", status.Error(codes.Internal, "broken"), "", recursive, "", nil, "broken"},
		{"old runtime, users", &runtimeapi.StatusResponse{}, "", nil, "", fullUser(), "does not support user namespaces"},
		{"new runtime, users", can, "new", nil, "", fullUser(), ""},
	} {
		f := newFake()
		f.answer("Status", tt.answer)
		f.answer("CreateContainer", &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
		cfg, sandbox := plainContainer(), plainSandbox()
		cfg.Mounts, cfg.Security.SupplementalGroupsPolicy, sandbox.RuntimeHandler = tt.mounts, tt.groups, tt.handler
		cfg.Security.Namespaces.User = tt.user
		c := start(t, f)
		if _, ok := c.KnownFeatures(); ok {
			t.Errorf("%s: features are known before anybody asked", tt.name)
		}
		id, err := c.CreateContainer(t.Context(), "s", cfg, sandbox)
		if tt.want == "" && (err != nil || id != "c1") || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %q, %v; want %q", tt.name, id, err, tt.want)
		}
	}
}
