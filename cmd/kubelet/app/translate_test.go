package app

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/credentials/nodecert"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/authn"
	"nodekit.dev/node/server/authz"
	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/node/wire"
)

func settingsOf(t *testing.T, text string) settings {
	t.Helper()
	b := newBed(t)
	o, f := newOptions(nil), &flags{}
	cmd, err := newCommand(o, f, io.Discard, newLogSink(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags([]string{"--config=" + b.config(t, text), "--root-dir=/r", "--hostname-override=n", "--node-ip=192.0.2.1", "--kubeconfig=/k"}); err != nil {
		t.Fatal(err)
	}
	s, err := load(o, f, cmd.Flags())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	s.loaded.Kubelet.PodLogsDir = strings.ReplaceAll(s.loaded.Kubelet.PodLogsDir, b.dir, "")
	return s
}

func translated(t *testing.T, text string) wire.Config {
	t.Helper()
	cfg, _, err := translate(t.Context(), settingsOf(t, text), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return cfg
}

// elsewhere are fields that do not go through translate, and the tests that
// hold them, here or of package config or of the cluster.
var elsewhere = map[string]string{
	"apiVersion": "TestBadFiles", "kind": "TestBadFiles",
	"staticPodPath": "TestSources", "fileCheckFrequency": "TestSources", "staticPodURL": "TestSources", "staticPodURLHeader": "TestSources", "httpCheckFrequency": "TestSources",
	"podLogsDir": "TestTranslate", "featureGates": "TestTranslate",
	"failCgroupV1": "TestCgroupV1",
	"healthzPort":  "TestRunningAgent", "healthzBindAddress": "TestHealthzAddress",
	"logging.format": "TestTextLog", "logging.verbosity": "TestVModule", "logging.flushFrequency": "TestLogIsFlushedByTime", "logging.vmodule": "TestVModule",
	"oomScoreAdj": "TestOOMScoreAdj", "podCIDR": "TestPodCIDR", "maxOpenFiles": "TestLimitFiles", "enableContentionProfiling": "TestContentionProfiling",
	"enableServer": "TestEnableServer", "authentication.webhook.enabled": "TestWhoIsAsked", "authorization.mode": "TestWhoIsAsked",
	"authentication.x509.clientCAFile": "TestSecurity",
	"tlsCipherSuites":                  "TestServedTLS", "tlsMinVersion": "TestServedTLS", "tlsCurvePreferences": "TestTLS",
}

// TestElsewhere: the tests that hold what this one does not are there.
func TestElsewhere(t *testing.T) {
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "../config/*_test.go", "../../../test/cluster/scenarios/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	for field, test := range elsewhere {
		if !strings.Contains(all.String(), "\nfunc "+test+"(t *testing.T)") {
			t.Errorf("%s: there is no %s", field, test)
		}
	}
}

// Every field that is said to be acted on changes what the parts are made from.
func TestEveryFieldActs(t *testing.T) {
	values := map[string]string{
		"containerLogMaxSize": "1Mi", "containerLogMaxFiles": "9", "containerLogMaxWorkers": "3", "containerLogMonitorInterval": "7s",
		"containerRuntimeEndpoint": "unix:///a", "imageServiceEndpoint": "unix:///b", "runtimeRequestTimeout": "9s",
		"serializeImagePulls": "true", "maxParallelImagePulls": "2\nserializeImagePulls: false",
		"cgroupRoot": "/x", "cgroupDriver": "systemd", "cgroupsPerQOS": "true", "cpuCFSQuota": "false", "cpuCFSQuotaPeriod": "50ms",
		"clusterDNS": "[192.0.2.53]", "clusterDomain": "a.example", "resolvConf": "/other", "seccompDefault": "true", "allowedUnsafeSysctls": "[net.core.somaxconn]",
		"crashLoopBackOff.maxContainerRestartPeriod": "", "podPidsLimit": "99", "volumeStatsAggPeriod": "9s",
	}
	for field, value := range map[string]string{
		"address": "192.0.2.9", "port": "1", "readOnlyPort": "1", "authentication.anonymous.enabled": "true",
		"authentication.webhook.cacheTTL": "9s", "authorization.webhook.cacheAuthorizedTTL": "9s", "authorization.webhook.cacheUnauthorizedTTL": "9s",
		"enableDebuggingHandlers": "false", "enableSystemLogHandler": "false", "enableSystemLogQuery": "true",
		"enableProfilingHandler": "false", "enableDebugFlagsHandler": "false", "streamingConnectionIdleTimeout": "9s",
		"tlsCertFile": "/c\ntlsPrivateKeyFile: /p", "tlsPrivateKeyFile": "/p\ntlsCertFile: /c", "rotateCertificates": "true", "serverTLSBootstrap": "true",
		"registerNode": "false", "registerWithTaints": "[{key: a, effect: NoSchedule}]", "providerID": "p", "maxPods": "3", "podsPerCore": "3",
		"nodeStatusUpdateFrequency": "9s", "nodeStatusReportFrequency": "9s", "nodeStatusMaxImages": "9", "nodeLeaseDurationSeconds": "9",
		"contentType": "application/json", "kubeAPIQPS": "9", "kubeAPIBurst": "9", "eventRecordQPS": "9", "eventBurst": "9",
		"makeIPTablesUtilChains": "true", "enableControllerAttachDetach": "false",
		"defaultPodSysctls": "{net.ipv4.ip_forward: \"1\"}\nfeatureGates: {DefaultPodSysctls: true}", "userNamespaces.idsPerPod": "131072",
	} {
		values[field] = value
	}
	before := fingerprint(all(t, ""))
	for _, field := range config.ActedOn() {
		value, ok := values[field]
		if _, other := elsewhere[field]; ok == other {
			t.Errorf("%s: must be in one of the two lists", field)
			continue
		}
		if !ok {
			continue
		}
		text := field + ": " + value + "\n"
		if path := strings.Split(field, "."); len(path) > 1 {
			value = cmp.Or(value, "9s")
			text = strings.Join(path, ": {") + ": " + value + strings.Repeat("}", len(path)-1) + "\n"
		}
		if fingerprint(all(t, text)) == before {
			t.Errorf("%q changes nothing", text)
		}
	}
}

// all is everything that is made of the configuration.
func all(t *testing.T, text string) any {
	t.Helper()
	s := settingsOf(t, text)
	cfg, member, err := translate(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	kc := &s.loaded.Kubelet
	return struct {
		Agent   wire.Config
		Member  *cluster.Config
		API     server.APIConfig
		Routes  kubeletapi.Config
		Tokens  authn.TokenConfig
		Webhook authz.WebhookConfig
	}{cfg, member, apiConfig(kc, "n"), routesConfig(kc, s.features, cfg), tokenConfig(kc), webhookConfig(kc)}
}

// fingerprint is all values in a configuration; of functions, that they are set.
func fingerprint(cfg any) string {
	var out strings.Builder
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if v.Type() == reflect.TypeFor[*cluster.Config]() && !v.IsNil() {
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fmt.Fprint(&out, v.Type().Field(i).Name, ":")
				walk(v.Field(i))
			}
		case reflect.Func, reflect.Pointer, reflect.Interface:
			fmt.Fprint(&out, !v.IsNil(), " ")
		default:
			fmt.Fprintf(&out, "%v ", v)
		}
	}
	walk(reflect.ValueOf(cfg))
	return out.String()
}

func TestTranslate(t *testing.T) {
	stock := translated(t, "")
	if stock.NodeName != "n" || stock.RootDir != "/r" || stock.PodLogsDir != "/log/pods" || stock.Host.LogLinksDir != "/log/containers" || stock.Host.PodCgroups {
		t.Errorf("%+v", stock)
	}
	rules := stock.Node.Rules
	if rules.BackoffBase != 10*time.Second || rules.BackoffMax != 5*time.Minute || !rules.RestartRules || !rules.RestartAllContainers {
		t.Errorf("stock rules: %+v", rules)
	}
	if !stock.Observe.Events || translated(t, "featureGates: {EventedPLEG: false}\n").Observe.Events {
		t.Error("events are on unless EventedPLEG=false says otherwise")
	}
	if stock.CRI.StreamLists || !translated(t, "featureGates: {CRIListStreaming: true}\n").CRI.StreamLists {
		t.Error("lists are streams where CRIListStreaming says so")
	}
	if stock.Node.Rules.ProbesAfterRestart || !translated(t, "featureGates: {ChangeContainerStatusOnKubeletRestart: true}\n").Node.Rules.ProbesAfterRestart {
		t.Error("probes begin anew after a restart where ChangeContainerStatusOnKubeletRestart says so")
	}
	if v := stock.VolumeStats; v.Period != time.Minute || v.Quotas || v.Health || v.Conditions {
		t.Errorf("volume stats by default: %+v", v)
	}
	if s := translated(t, "featureGates: {SELinuxMount: false}\n").SELinux; s.AllVolumes || !s.OneUser || !stock.SELinux.AllVolumes {
		t.Errorf("SELinux: %+v", s)
	}
	gated := translated(t, "volumeStatsAggPeriod: -1s\nfeatureGates: {LocalStorageCapacityIsolationFSQuotaMonitoring: true}\n").VolumeStats
	if !gated.Off() || !gated.Quotas || translated(t, "volumeStatsAggPeriod: 0s\n").VolumeStats.Period != time.Minute {
		t.Errorf("volume stats: %+v", gated)
	}
	fast := translated(t, "featureGates: {ReduceDefaultCrashLoopBackOffDecay: true}\n").Node.Rules
	if fast.BackoffBase != time.Second || fast.BackoffMax != 5*time.Minute {
		t.Errorf("ReduceDefaultCrashLoopBackOffDecay: %+v", fast)
	}
	fast = translated(t, "featureGates: {ReduceDefaultCrashLoopBackOffDecay: true, KubeletCrashLoopBackOffMax: false}\n").Node.Rules
	if fast.BackoffMax != time.Minute {
		t.Errorf("ReduceDefaultCrashLoopBackOffDecay alone: %+v", fast)
	}
	short := translated(t, "crashLoopBackOff: {maxContainerRestartPeriod: 2s}\n").Node.Rules
	if short.BackoffBase != 2*time.Second || short.BackoffMax != 2*time.Second {
		t.Errorf("the first back-off is longer than the last: %+v", short)
	}
	if off := translated(t, "featureGates: {ContainerRestartRules: false, RestartAllContainersOnContainerExits: false}\n").Node.Rules; off.RestartRules || off.RestartAllContainers {
		t.Errorf("the gates of restart rules: %+v", off)
	}
	if stock.Images.MaxParallel != 5 {
		t.Errorf("by default %d pulls at once", stock.Images.MaxParallel)
	}
	if one := translated(t, "serializeImagePulls: true\n"); one.Images.MaxParallel != 1 {
		t.Errorf("serializeImagePulls: %d at once", one.Images.MaxParallel)
	}
	if root := translated(t, "cgroupRoot: agents/one/\n").Spec.Cgroups.Root; root != "/agents/one" {
		t.Errorf("cgroupRoot %q", root)
	}
	if none := translated(t, "resolvConf: \"\"\n").Spec; !none.LocalDNS || none.HostDNS != nil || stock.Spec.LocalDNS {
		t.Errorf("an empty resolvConf: local %v, by default %v", none.LocalDNS, stock.Spec.LocalDNS)
	}
}

func TestTranslatePodEnvironment(t *testing.T) {
	stock := translated(t, "")
	if !stock.Spec.EnvFiles || stock.Spec.StopSignals || stock.Node.Rules.StopSignals || stock.Admission.CompareTaints ||
		stock.Users.Owned == nil || stock.Users.IDsPerPod != 0 || stock.Users.MaxPods != 110 {
		t.Errorf("by default: spec %+v, users %+v", stock.Spec, stock.Users)
	}
	set := translated(t, "featureGates: {EnvFiles: false, ContainerStopSignals: true, TaintTolerationComparisonOperators: true, DefaultPodSysctls: true}\n"+
		"defaultPodSysctls: {net.ipv4.ip_forward: \"1\"}\nuserNamespaces: {idsPerPod: 131072}\n")
	if set.Spec.EnvFiles || !set.Spec.StopSignals || !set.Node.Rules.StopSignals || !set.Admission.CompareTaints ||
		set.Spec.DefaultPodSysctls["net.ipv4.ip_forward"] != "1" || set.Users.IDsPerPod != 131072 {
		t.Errorf("set: spec %+v, users %+v", set.Spec, set.Users)
	}
}

func TestHealthzAddress(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"healthzPort: 10248\n": "127.0.0.1:10248",
		"healthzPort: 1\nhealthzBindAddress: \"::1\"\n": "[::1]:1",
	} {
		if got := healthzAddress(&settingsOf(t, text).loaded.Kubelet); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSources(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "staticPodPath: /m\n": 1, "staticPodURL: http://x\n": 1, "staticPodPath: /m\nstaticPodURL: http://x\nstaticPodURLHeader: {A: [b]}\n": 2,
	} {
		if got := len(sources(wire.Config{}, settingsOf(t, text), eventLog{})); got != want {
			t.Errorf("%q: %d sources, want %d", text, got, want)
		}
	}
}

// TestTLS: what the API speaks.
func TestTLS(t *testing.T) {
	serving := (&nodecert.Manager{}).Server
	for _, tc := range []struct {
		text   string
		min    uint16
		suites int
		curves int
	}{
		{"", 0, 0, 0},
		{"tlsMinVersion: VersionTLS13\n", tls.VersionTLS13, 0, 0},
		{"tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\ntlsCurvePreferences: [29]\n", 0, 1, 1},
	} {
		got, err := (&api{}).tls(&settingsOf(t, tc.text).loaded.Kubelet, serving, slog.New(slog.DiscardHandler))
		if err != nil || got.MinVersion != tc.min && got.MinVersion != tls.VersionTLS12 || len(got.CipherSuites) != tc.suites || len(got.CurvePreferences) != tc.curves {
			t.Errorf("%q: %+v, %v", tc.text, got, err)
		}
	}
}
