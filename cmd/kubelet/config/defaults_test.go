package config

import (
	"path/filepath"
	"testing"
	"time"
)

func TestKubeadm(t *testing.T) {
	loaded, err := NewLoader().Load(Files{Main: "testdata/kubeadm.yaml", Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	gates, err := StockGates()
	if err != nil {
		t.Fatal(err)
	}
	features, err := gates.Resolve(loaded.Kubelet.FeatureGates)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(&loaded.Kubelet, features); err != nil {
		t.Error(err)
	}
	kc := loaded.Kubelet
	for name, got := range map[string][2]any{
		"fileCheckFrequency":               {kc.FileCheckFrequency.Duration, 20 * time.Second},
		"runtimeRequestTimeout":            {kc.RuntimeRequestTimeout.Duration, 2 * time.Minute},
		"nodeStatusReportFrequency":        {kc.NodeStatusReportFrequency.Duration, 5 * time.Minute},
		"authentication.webhook.cacheTTL":  {kc.Authentication.Webhook.CacheTTL.Duration, 2 * time.Minute},
		"logging.flushFrequency":           {kc.Logging.FlushFrequency.Duration.Duration, 5 * time.Second},
		"containerRuntimeEndpoint":         {kc.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock"},
		"clientCAFile":                     {kc.Authentication.X509.ClientCAFile, "/etc/kubernetes/pki/ca.crt"},
		"cgroupDriver":                     {kc.CgroupDriver, "systemd"},
		"streamingConnectionIdleTimeout":   {kc.StreamingConnectionIdleTimeout.Duration, 4 * time.Hour},
		"crashLoopBackOff":                 {kc.CrashLoopBackOff.MaxContainerRestartPeriod.Duration, 5 * time.Minute},
		"evictionPressureTransitionPeriod": {kc.EvictionPressureTransitionPeriod.Duration, 5 * time.Minute},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
	for _, missing := range loaded.NotActedOn() {
		t.Errorf("a plain node of kubeadm has a setting without effect: %v", missing)
	}
}

// Defaults that depend on what else is set.
func TestDependentDefaults(t *testing.T) {
	for text, check := range map[string]func(KubeletConfiguration) bool{
		"nodeStatusUpdateFrequency: 7s":                     func(kc KubeletConfiguration) bool { return kc.NodeStatusReportFrequency.Duration == 7*time.Second },
		"podPidsLimit: -5":                                  func(kc KubeletConfiguration) bool { return *kc.PodPidsLimit == -1 },
		"healthzPort: 0":                                    func(kc KubeletConfiguration) bool { return *kc.HealthzPort == 0 },
		"resolvConf: \"\"":                                  func(kc KubeletConfiguration) bool { return *kc.ResolverConfig == "" },
		"enforceNodeAllocatable: []":                        func(kc KubeletConfiguration) bool { return len(kc.EnforceNodeAllocatable) == 0 },
		"evictionHard: {}":                                  func(kc KubeletConfiguration) bool { return len(kc.EvictionHard) == 0 },
		"featureGates: {KubeletCrashLoopBackOffMax: false}": func(kc KubeletConfiguration) bool { return kc.CrashLoopBackOff.MaxContainerRestartPeriod == nil },
		"featureGates: {AllBeta: false}":                    func(kc KubeletConfiguration) bool { return kc.ImagePullCredentialsVerificationPolicy == "" },
		"logging: {verbosity: 3}":                           func(kc KubeletConfiguration) bool { return kc.Logging.Format == "text" && kc.Logging.Verbosity == 3 },
		"authentication: {webhook: {enabled: false}}": func(kc KubeletConfiguration) bool {
			return !*kc.Authentication.Webhook.Enabled && kc.Authentication.Webhook.CacheTTL.Duration == 2*time.Minute
		},
	} {
		loaded, err := NewLoader().Load(Files{Main: write(t, t.TempDir(), "k.yaml", header+text+"\n")})
		if err != nil || !check(loaded.Kubelet) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// null in a drop-in takes back what the main file says; files of folders are
// read where the folder's name stands.
func TestDropInsAsTheStockKubelet(t *testing.T) {
	dir := t.TempDir()
	main := write(t, dir, "k.yaml", header+"maxPods: 5\nclusterDomain: a.example\n")
	write(t, dir, "d/10/z.conf", header+"maxPods: null\nclusterDomain: first.example\n")
	write(t, dir, "d/10-a.conf", header+"clusterDomain: second.example\n")
	write(t, dir, "d/10.conf", header+"clusterDomain: third.example\n")
	loaded, err := NewLoader().Load(Files{Main: main, DropInDir: filepath.Join(dir, "d")})
	if err != nil || loaded.Kubelet.MaxPods != 110 || loaded.Kubelet.ClusterDomain != "third.example" {
		t.Errorf("maxPods %d, clusterDomain %s, %v", loaded.Kubelet.MaxPods, loaded.Kubelet.ClusterDomain, err)
	}
	if got, want := loaded.Where("clusterDomain"), filepath.Join(dir, "d/10.conf")+":3"; got != want {
		t.Errorf("clusterDomain is set by %s, want %s", got, want)
	}
}
