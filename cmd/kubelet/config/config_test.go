package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	main := write(t, dir, "kubelet.yaml", header+"maxPods: 20\nclusterDNS: [10.0.0.1, 10.0.0.2]\nfeatureGates: {ContainerRestartRules: true}\nhealthzPort: null\n")
	write(t, dir, "d/20-b.conf", header+"maxPods: 40\nfeatureGates: {EventedPLEG: true}\n")
	write(t, dir, "d/10-a.conf", header+"maxPods: 30\nclusterDNS: [10.0.0.9]\n")
	write(t, dir, "d/30-ignored.yaml", header+"maxPods: 50\n")

	loaded, err := NewLoader().Load(Files{Main: main, DropInDir: filepath.Join(dir, "d"), Override: map[string]any{"clusterDomain": "over.ride"}})
	if err != nil {
		t.Fatal(err)
	}
	kc := loaded.Kubelet
	if kc.MaxPods != 40 || len(kc.ClusterDNS) != 1 || kc.ClusterDNS[0] != "10.0.0.9" || kc.ClusterDomain != "over.ride" {
		t.Errorf("layers: maxPods %d, clusterDNS %v, clusterDomain %q", kc.MaxPods, kc.ClusterDNS, kc.ClusterDomain)
	}
	if len(kc.FeatureGates) != 2 {
		t.Errorf("feature gates must merge by key: %v", kc.FeatureGates)
	}
	if *kc.HealthzPort != 10248 || kc.FileCheckFrequency.Duration != 20*time.Second {
		t.Errorf("defaults: healthzPort %d, fileCheckFrequency %v", *kc.HealthzPort, kc.FileCheckFrequency)
	}
	for field, want := range map[string]string{
		"maxPods":                            filepath.Join(dir, "d/20-b.conf") + ":3",
		"featureGates.ContainerRestartRules": main + ":5",
		"clusterDomain":                      "--cluster-domain",
		"fileCheckFrequency":                 "",
	} {
		if got := loaded.Where(field); got != want {
			t.Errorf("%s is said to be set by %q, want %q", field, got, want)
		}
	}
	if len(loaded.Ignored) != 1 || filepath.Base(loaded.Ignored[0]) != "30-ignored.yaml" {
		t.Errorf("ignored: %v", loaded.Ignored)
	}
}

func TestEvictionDefaultsGoWithTheFirstThreshold(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]int{
		"": 5,
		"evictionHard: {memory.available: 1Gi}\n":                                     1,
		"evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n": 5,
	} {
		loaded, err := NewLoader().Load(Files{Main: write(t, dir, "k.yaml", header+text)})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(loaded.Kubelet.EvictionHard); got != want {
			t.Errorf("%q: %d thresholds, want %d", text, got, want)
		}
	}
}

func TestProblemsNameFileLineAndNearestField(t *testing.T) {
	dir := t.TempDir()
	main := write(t, dir, "k.yaml", header+"maxPod: 3\nlogging:\n  formt: json\nmaxPods: 1\nmaxPods: 2\n")
	loaded, err := NewLoader().Load(Files{Main: main})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range loaded.Problems {
		got = append(got, p.Error())
	}
	want := []string{
		main + `:3: unknown field "maxPod" (did you mean "maxPods"?)`,
		main + `:5: unknown field "logging.formt" (did you mean "logging.format"?)`,
		main + `:7: duplicate field (first on line 6; this one counts) "maxPods"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if loaded.Kubelet.MaxPods != 2 {
		t.Errorf("of a duplicate the last counts, got %d", loaded.Kubelet.MaxPods)
	}
	if _, err := NewLoader().Load(Files{Main: main, Strict: true}); err == nil || !strings.Contains(err.Error(), `"logging.formt"`) {
		t.Errorf("strict: want an error that names every field, got %v", err)
	}
}

type widget struct {
	Colour string `json:"colour"`
}

func TestRelativeStaticPodPath(t *testing.T) {
	dir := t.TempDir()
	main := write(t, dir, "k.yaml", header+"staticPodPath: pods\n")
	write(t, dir, "d/10.conf", header+"staticPodPath: more/../manifests\n")
	for _, row := range []struct{ dropIns, want string }{{"", "pods"}, {filepath.Join(dir, "d"), "d/manifests"}} {
		loaded, err := NewLoader().Load(Files{Main: main, DropInDir: row.dropIns})
		if err != nil || loaded.Kubelet.StaticPodPath != filepath.Join(dir, row.want) {
			t.Errorf("%q: %v, %v; want %s below %s", row.dropIns, loaded, err, row.want, dir)
		}
	}
}

func TestNotActedOnNamesPaths(t *testing.T) {
	text := "logging: {format: json}\nevictionHard: {memory.available: 1Gi}\nevictionSoft: {}\nqosReserved: null\ncpuManagerReconcilePeriod: 0s\n" +
		"memorySwap: {swapBehavior: LimitedSwap}\nvolumePluginDir: /v\ncrashLoopBackOff: {maxContainerRestartPeriod: 9s}\nlogin: 3\n"
	loaded, err := NewLoader().Load(Files{Main: write(t, t.TempDir(), "k.yaml", header+text)})
	if err != nil {
		t.Fatal(err)
	}
	want := []Missing{{"resources", []string{"evictionHard", "memorySwap.swapBehavior"}}, {"volume", []string{"volumePluginDir"}}}
	if got := loaded.NotActedOn(); !reflect.DeepEqual(got, want) {
		t.Errorf("not acted on: %v, want %v", got, want)
	}
}

func TestVendorKind(t *testing.T) {
	dir := t.TempDir()
	kind := Register[widget]("vendor.example/v1", "Widget")
	vendor := "---\napiVersion: vendor.example/v1\nkind: Widget\n"
	loaded, err := NewLoader(kind).Load(Files{Main: write(t, dir, "k.yaml", header+vendor+"colour: red\n")})
	if err != nil {
		t.Fatal(err)
	}
	if w, ok := Get[widget](loaded); !ok || w.Colour != "red" {
		t.Errorf("got %+v, %t", w, ok)
	}
	if _, ok := Get[int](loaded); ok {
		t.Error("Get of a kind that no file has must say so")
	}
	_, err = NewLoader(kind).Load(Files{Main: write(t, dir, "bad.yaml", vendor+"color: red\n")})
	if err == nil || !strings.Contains(err.Error(), `unknown field "color" (did you mean "colour"?)`) {
		t.Errorf("a vendor's kind is strict, got %v", err)
	}
	_, err = NewLoader().Load(Files{Main: write(t, dir, "no.yaml", vendor)})
	if err == nil || !strings.Contains(err.Error(), `no kind "Widget" is registered`) {
		t.Errorf("got %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	for name, row := range map[string]struct{ text, want string }{
		"no kind": {"maxPods: 1\n", "apiVersion and kind must be set"},
		"a list":  {"- 1\n", "want a mapping"},
		"broken":  {header + "a: [\n", "did not find"},
		"empty":   {"", "was empty"},
	} {
		_, err := NewLoader().Load(Files{Main: write(t, dir, "k.yaml", row.text)})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
		_, err = NewLoader().Load(Files{DropInDir: filepath.Dir(write(t, dir, "d/k.conf", row.text))})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s, a drop-in: got %v, want %q", name, err, row.want)
		}
	}
	if _, err := NewLoader().Load(Files{Main: filepath.Join(dir, "absent")}); err == nil {
		t.Error("an absent file is an error")
	}
}

func TestGates(t *testing.T) {
	gates, err := StockGates()
	if err != nil {
		t.Fatal(err)
	}
	if err := gates.AddGate(Gate{Name: "VendorTurbo", Stage: Alpha}); err != nil {
		t.Fatal(err)
	}
	if err := gates.AddGate(Gate{Name: "VendorTurbo"}); err == nil {
		t.Error("a second gate of one name must be refused")
	}
	for _, row := range []struct {
		set, want string
	}{
		{"VendorTurbo=true", ""},
		{"ContainerRestartRules=false,RestartAllContainersOnContainerExits=false", ""},
		{"ContainerRestartRules=false", "RestartAllContainersOnContainerExits is enabled, but depends on features that are disabled: [ContainerRestartRules]"},
		{"NoSuchGate=true", "unrecognized feature gate: NoSuchGate"},
		{"RuntimeClass=true", "unrecognized feature gate: RuntimeClass"},
		{"PLEGOnDemandRelist=false", "cannot set feature gate PLEGOnDemandRelist to false, feature is locked to true"},
		{"CSIVolumeHealth=true", "cannot set feature gate CSIVolumeHealth to true: nodekit does not have this feature (ALPHA in v1.37, missing in volume)"},
		{"GracefulNodeShutdown=false", "cannot set feature gate GracefulNodeShutdown to false: nodekit does not act on it yet (BETA in v1.37, missing in shutdown)"},
		{"ContextualLogging=false", "cannot set feature gate ContextualLogging to false: nodekit always behaves as with true"},
		{"StorageVersionAPI=true,SchedulerAsyncPreemption=false", ""}, // of other components, and any value is fine
		{"DeclarativeValidation=false", "cannot set feature gate DeclarativeValidation to false, feature is locked to true"},
		{"NoSuchGate=true,PLEGOnDemandRelist=false", "[unrecognized feature gate: NoSuchGate, cannot set feature gate PLEGOnDemandRelist to false, feature is locked to true]"},
	} {
		set, err := ParseGates(row.set)
		if err != nil {
			t.Fatal(err)
		}
		f, err := gates.Resolve(set)
		if (row.want == "") != (err == nil) || err != nil && err.Error() != row.want {
			t.Errorf("%s: got %v, want %q", row.set, err, row.want)
		}
		for name, on := range set {
			if err == nil && f.Enabled(name) != on {
				t.Errorf("%s: value not taken", row.set)
			}
		}
	}
	f, err := gates.Resolve(map[string]bool{"NodeSwap": true})
	if err != nil || len(f.Warnings) != 1 {
		t.Errorf("a gate that is on but not built yet is a warning: %v, %v", f.Warnings, err)
	}
	f, err = gates.Resolve(map[string]bool{"GenericWorkload": true, "AllAlpha": false, "StorageVersionAPI": true, "ContainerRestartRules": true})
	if want := "no part of a node depends on these feature gates, so that they have no effect here: GenericWorkload, StorageVersionAPI"; err != nil ||
		len(f.Warnings) != 1 || f.Warnings[0] != want {
		t.Errorf("gates of other components: %q, %v", f.Warnings, err)
	}
	if f, err := gates.Resolve(map[string]bool{"AllAlpha": false, "ContainerRestartRules": true}); err != nil || len(f.Warnings) > 0 {
		t.Errorf("nothing to warn of: %q, %v", f.Warnings, err)
	}
	if f, _ := gates.Resolve(map[string]bool{"AllBeta": false, "ContainerRestartRules": true}); !f.Enabled("ContainerRestartRules") || f.Enabled("KubeletCrashLoopBackOffMax") {
		t.Error("an explicit gate outranks AllBeta")
	}
	if _, err := ParseGates("A"); err == nil {
		t.Error("a gate needs a value")
	}
	if _, err := ParseGates("A=maybe"); err == nil {
		t.Error("a gate's value is a bool")
	}
}

func TestRemovedFlagsAllHaveAHint(t *testing.T) {
	for _, name := range strings.Fields("docker-endpoint image-pull-progress-deadline network-plugin cni-conf-dir cni-bin-dir cni-cache-dir network-plugin-mtu experimental-dockershim-root-directory container-runtime pod-infra-container-image non-masquerade-cidr really-crash-for-testing experimental-check-node-capabilities-before-mount") {
		if !strings.Contains(RemovedFlag(name), "Removed in v1.") {
			t.Errorf("--%s: no word on what to do", name)
		}
	}
	if RemovedFlag("config") != "" {
		t.Error("--config is not removed")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(header + "maxPods: 3\nlogging: {format: json}\n")
	f.Add(header + "a: &a {b: *a}\n")
	f.Add(header + "x: {<<: {maxPods: 1}, y: 2}\nevictionHard: {memory.available: 1}\n---\n")
	f.Add("apiVersion: 1\nkind: []\n")
	f.Fuzz(func(t *testing.T, text string) {
		loaded, err := NewLoader().Load(Files{Main: write(t, t.TempDir(), "k.yaml", text)})
		if err != nil {
			return
		}
		_ = Validate(&loaded.Kubelet, Features{})
		_ = loaded.NotActedOn()
	})
}

func TestUnknownGatesHaveAHint(t *testing.T) {
	gates, err := StockGates()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"EventedPLEGG": "Did you mean EventedPLEG?", "DynamicKubeletConfig": "may have been removed", "PodOverhead": "was removed in v1.26",
	} {
		_, err := gates.Resolve(map[string]bool{name: true})
		var h interface{ Hint() string }
		if !errors.As(err, &h) || !strings.Contains(h.Hint(), want) {
			t.Errorf("%s: %v, want a hint that says %q", name, err, want)
		}
	}
}
