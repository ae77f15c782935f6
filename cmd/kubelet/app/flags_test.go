package app

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
)

// parsed is the command's flags after parsing.
func parsed(t *testing.T, args ...string) (*flags, *pflag.FlagSet, error) {
	t.Helper()
	f := &flags{}
	cmd, err := newCommand(newOptions(nil), f, io.Discard, newLogSink(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	return f, cmd.Flags(), cmd.ParseFlags(args)
}

// A value for each type of flag, and what it becomes in the configuration.
func TestFlagValues(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"--max-pods=7", `{"maxPods":7}`},
		{"--max-pods=0x10", `{"maxPods":16}`},
		{"--fail-swap-on=false", `{"failSwapOn":false}`},
		{"--anonymous-auth", `{"authentication":{"anonymous":{"enabled":true}}}`},
		{"--sync-frequency=90s", `{"syncFrequency":"1m30s"}`},
		{"--address=::", `{"address":"::"}`},
		{"--cluster-dns=10.0.0.1,10.0.0.2 --cluster-dns=10.0.0.3", `{"clusterDNS":["10.0.0.1","10.0.0.2","10.0.0.3"]}`},
		{"--enforce-node-allocatable=", `{"enforceNodeAllocatable":[]}`},
		{"--system-reserved=cpu=200m,memory=1Gi --system-reserved=pid=100", `{"systemReserved":{"cpu":"200m","memory":"1Gi","pid":"100"}}`},
		{"--eviction-hard=memory.available<1Gi,nodefs.available<10%", `{"evictionHard":{"memory.available":"1Gi","nodefs.available":"10%"}}`},
		{"--cpu-manager-policy-options=full-pcpus-only=true,x", `{"cpuManagerPolicyOptions":{"full-pcpus-only":"true,x"}}`},
		{"--manifest-url-header=a:b,a:c,d:e", `{"staticPodURLHeader":{"a":["b","c"],"d":["e"]}}`},
		{"--register-with-taints=k=v:NoSchedule,x:NoExecute", `{"registerWithTaints":[{"effect":"NoSchedule","key":"k","value":"v"},{"effect":"NoExecute","key":"x"}]}`},
		{"--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Gi;1:memory=3Gi", `{"reservedMemory":[{"limits":{"hugepages-2Mi":"2Gi","memory":"1Gi"},"numaNode":0},{"limits":{"memory":"3Gi"},"numaNode":1}]}`},
		{"-v=4 --vmodule=a*=5,b=6", `{"logging":{"verbosity":4,"vmodule":[{"filePattern":"a*","verbosity":5},{"filePattern":"b","verbosity":6}]}}`},
		{"--feature-gates=EventedPLEG=true --feature_gates=EnvFiles=false", `{"featureGates":{"EnvFiles":false,"EventedPLEG":true}}`},
		{"--seccomp-default", `{"seccompDefault":true}`},
		{"--root-dir=/r", `{}`},
	} {
		f, set, err := parsed(t, strings.Fields(row.args)...)
		if err != nil {
			t.Errorf("%s: %v", row.args, err)
			continue
		}
		layer, err := f.override(set)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(layer)
		if err != nil || string(got) != strings.ReplaceAll(row.want, "<", `\u003c`) {
			t.Errorf("%s: %s, %v; want %s", row.args, got, err, row.want)
		}
		if _, err := config.NewLoader().Load(config.Files{Override: layer}); err != nil {
			t.Errorf("%s can not be loaded: %v", row.args, err)
		}
	}
}

func TestBadFlagValues(t *testing.T) {
	for arg, want := range map[string]string{
		"--max-pods=3000000000":           "want a number of at most 32 bits",
		"--fail-swap-on=perhaps":          "want true or false",
		"--sync-frequency=20":             "want a duration",
		"--address=localhost":             `"localhost" is not a valid IP address`,
		"--system-reserved=cpu":           "malformed pair, expect string=string",
		"--eviction-hard=memory=1":        "malformed pair, expect string<string",
		"--manifest-url-header=a":         "malformed pair, expect string:string",
		"--register-with-taints=k=v":      "invalid taint spec: k=v",
		"--register-with-taints=k=v:Now":  "invalid taint effect: Now, unsupported taint effect",
		"--reserved-memory=0:cpu=1":       `memory type conversion error, unknown type: "cpu"`,
		"--reserved-memory=a:memory=1":    "failed to convert the NUMA node ID, expected integer, got a",
		"--vmodule=a":                     `"a" does not have the pattern=N format`,
		"--version=v1.30":                 "want true, false or raw",
		"--log-text-info-buffer-size=big": "want a quantity",
	} {
		if _, _, err := parsed(t, arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

// A flag replaces what the file says, in whole; gates add up.
func TestFlagsOutrankFiles(t *testing.T) {
	b := newBed(t)
	file := b.config(t, "evictionSoft: {memory.available: 1Gi, nodefs.available: 10%}\nclusterDNS: [10.0.0.1]\nfeatureGates: {EventedPLEG: true}\nmaxPods: 5\n")
	f, set, err := parsed(t, "--config="+file, "--eviction-soft=imagefs.available<5%", "--cluster-dns=10.0.0.9",
		"--feature-gates=ReduceDefaultCrashLoopBackOffDecay=true", "--container-runtime-endpoint=/run/x.sock")
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(newOptions(nil), f, set)
	if err != nil {
		t.Fatal(err)
	}
	kc := s.loaded.Kubelet
	if len(kc.EvictionSoft) != 1 || len(kc.ClusterDNS) != 1 || kc.ClusterDNS[0] != "10.0.0.9" || len(kc.FeatureGates) != 2 || kc.MaxPods != 5 {
		t.Errorf("%v %v %v %d", kc.EvictionSoft, kc.ClusterDNS, kc.FeatureGates, kc.MaxPods)
	}
	if got := s.loaded.Where("clusterDNS"); got != "--cluster-dns" {
		t.Errorf("clusterDNS is set by %q", got)
	}
}

func TestNodeLabels(t *testing.T) {
	vendors := func(key string) bool { return key == "rack.vendor.k8s.io/row" }
	for labels, want := range map[string]string{
		"": "", "a=b,example.com/c=d": "", "node.kubernetes.io/x=y": "", "sub.node.kubernetes.io/x=y": "", "topology.kubernetes.io/zone=z": "",
		"rack.vendor.k8s.io/row=7":               "",
		"kubernetes.io/role=x":                   "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [kubernetes.io/role]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set (beta.kubernetes.io/arch, ",
		"node-role.kubernetes.io/control-plane=": "[node-role.kubernetes.io/control-plane]",
		"a b=c":                                  "invalid node labels: 'a b' - ",
		"a=b c":                                  "invalid node labels: 'b c' - ",
	} {
		f, _, err := parsed(t, "--node-labels="+labels)
		if err != nil {
			t.Fatal(err)
		}
		err = f.validate(vendors)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", labels, err, want)
		}
	}
	for arg, want := range map[string]string{
		"--cloud-provider=aws":           "cloud providers inside of the kubelet were removed",
		"--experimental-mounter-path=/m": "a mounter in a container is not supported",
		"--cloud-provider=external":      "",
	} {
		f, _, err := parsed(t, arg)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.validate(vendors); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

// Without a file the stock kubelet lets everyone do everything; this one does not.
func TestWithoutAFile(t *testing.T) {
	f, set, err := parsed(t)
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(newOptions(nil), f, set)
	if err != nil {
		t.Fatal(err)
	}
	kc := s.loaded.Kubelet
	if *kc.Authentication.Anonymous.Enabled || !*kc.Authentication.Webhook.Enabled || kc.Authorization.Mode != "Webhook" || kc.ReadOnlyPort != 0 {
		t.Errorf("%+v %+v, read-only port %d", kc.Authentication, kc.Authorization, kc.ReadOnlyPort)
	}
	if f, set, err = parsed(t, "--anonymous-auth", "--authorization-mode=AlwaysAllow", "--read-only-port=10255"); err != nil {
		t.Fatal(err)
	}
	if s, err = load(newOptions(nil), f, set); err != nil {
		t.Fatal(err)
	}
	kc = s.loaded.Kubelet
	if !*kc.Authentication.Anonymous.Enabled || kc.Authorization.Mode != "AlwaysAllow" || kc.ReadOnlyPort != 10255 {
		t.Error("the old ways can not be asked for")
	}
}
