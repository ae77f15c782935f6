package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// proxied is what the node answers when the API server asks it on the user's
// behalf.
func (e *env) proxied(t *testing.T, path string) string {
	t.Helper()
	return e.kubectl(t, "get", "--raw", "/api/v1/nodes/node-0/proxy/"+path)
}

// posted is proxied by POST; what kubectl says of a refusal comes back too.
func (e *env) posted(t *testing.T, path string) (string, error) {
	t.Helper()
	empty := write(t, filepath.Join(t.TempDir(), "empty"), "")
	return e.Plane.Kubectl(t.Context(), "create", "--raw", "/api/v1/nodes/node-0/proxy/"+path, "-f", empty)
}

// wants looks for each pattern in an answer.
func wants(t *testing.T, path, got string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("/%s has no %s: %.1500q", path, pattern, got)
		}
	}
}

func proxyPods(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, sleeper)
	made := e.untilPod(t, patience, ns, "sleeper", ready)
	find := func(path string) corev1.Pod {
		var list corev1.PodList
		if err := json.Unmarshal([]byte(e.proxied(t, path)), &list); err != nil || list.Kind != "PodList" {
			t.Fatalf("/%s: a %q, %v", path, list.Kind, err)
		}
		for _, p := range list.Items {
			if p.UID == made.UID {
				return p
			}
		}
		t.Fatalf("/%s has no pod %s: %+v", path, made.UID, list.Items)
		return corev1.Pod{}
	}
	p := find("pods")
	if p.Namespace != ns || p.Name != "sleeper" || p.Spec.Containers[0].Image != made.Spec.Containers[0].Image || p.Spec.ServiceAccountName != "default" {
		t.Errorf("/pods: %+v", p)
	}
	if got, want := p.Status, made.Status; got.Phase != corev1.PodRunning || got.PodIP == "" || got.PodIP != want.PodIP ||
		got.ContainerStatuses[0].ContainerID != want.ContainerStatuses[0].ContainerID || got.ContainerStatuses[0].State.Running == nil {
		t.Errorf("/pods tells the status %+v, the API %+v", got, want)
	}
	running := find("runningpods/")
	if running.Namespace != ns || running.Name != "sleeper" || len(running.Spec.Containers) != 1 || running.Spec.Containers[0].Name != "main" {
		t.Errorf("/runningpods/: %+v", running)
	}
	e.kubectl(t, "-n", ns, "delete", "pod", "sleeper", "--timeout=60s")
	for _, path := range []string{"pods", "runningpods/"} {
		e.eventually(t, patience, func() error {
			if strings.Contains(e.proxied(t, path), string(made.UID)) {
				return fmt.Errorf("/%s still has the pod that was deleted", path)
			}
			return nil
		})
	}
}

func proxyRun(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, sleeper)
	pod := e.untilPod(t, patience, ns, "sleeper", ready)
	for _, object := range []string{ns + "/sleeper", ns + "/sleeper/" + string(pod.UID)} {
		if got, err := e.posted(t, "run/"+object+"/main?cmd=cat+/etc/hostname"); err != nil || strings.TrimSpace(got) != "sleeper" {
			t.Errorf("/run/%s: %q, %v", object, got, err)
		}
	}
	for path, want := range map[string]string{
		"run/" + ns + "/sleeper/main?cmd=ls+/nowhere": "command 'ls /nowhere' exited with 1: ls: /nowhere: No such file or directory",
		"run/" + ns + "/sleeper/nobody?cmd=id":        "container not found",
		"run/" + ns + "/nobody/main?cmd=id":           "could not find the requested resource",
	} {
		if got, err := e.posted(t, path); err == nil || !strings.Contains(got+err.Error(), want) {
			t.Errorf("/%s: %q, %v; want %q", path, got, err, want)
		}
	}
}

// proxyCheckpoint: an archive where CRIU is there, else the runtime's own words
// about what is missing. Nothing is made for what is not there.
func proxyCheckpoint(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)
	object := ns + "/sleeper/main"
	got, err := e.posted(t, "checkpoint/"+object+"?timeout=60")
	dir := filepath.Join(e.Nodes[0].Agent.Root, "checkpoints")
	if err == nil {
		var made struct{ Items []string }
		if err := json.Unmarshal([]byte(got), &made); err != nil || len(made.Items) != 1 || filepath.Dir(made.Items[0]) != dir {
			t.Fatalf("/checkpoint: %q, %v", got, err)
		}
		if info, err := os.Stat(made.Items[0]); err != nil || info.Size() == 0 {
			t.Errorf("the archive: %v, %v", info, err)
		}
		return
	}
	wants(t, "checkpoint/"+object, got+err.Error(), "checkpointing of "+object+` failed \(.*(?i:criu|checkpoint)`)
	if got, err := e.posted(t, "checkpoint/"+ns+"/sleeper/nobody"); err == nil || !strings.Contains(got+err.Error(), "could not find the requested resource") {
		t.Errorf("a container that is not there: %q, %v", got, err)
	}
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		t.Errorf("archives are left: %v", left)
	}
}

// proxyLogs: files below /var/log, and queries for what services said.
func proxyLogs(t *testing.T, e *env, _ string) {
	dir, err := os.MkdirTemp("/var/log", "nodekit-proxy-") //nolint:usetesting // the kubelet serves what is below /var/log
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	service := "svc" + strings.TrimPrefix(name, "nodekit-proxy-")
	t.Cleanup(func() { _ = os.RemoveAll(dir); _ = os.Remove("/var/log/" + service + ".log") })
	write(t, filepath.Join(dir, "boot.log"), "first line\nlast line\n")
	write(t, "/var/log/"+service+".log", "the service says\n")
	for path, want := range map[string]string{
		"logs/" + name + "/boot.log":                "first line\nlast line\n",
		"logs/?query=/" + name + "/boot.log":        "first line\nlast line\n",
		"logs/?query=" + service:                    "the service says\n",
		"logs/?query=" + service + "&query=nothing": "the service says\n\nlog not found for nothing\n",
	} {
		if got := e.proxied(t, path); got != want {
			t.Errorf("/%s: %q, want %q", path, got, want)
		}
	}
	wants(t, "logs/", e.proxied(t, "logs/"), name+"/")
	wants(t, "logs/"+name+"/", e.proxied(t, "logs/"+name+"/"), `boot\.log`)
	for path, want := range map[string]string{
		"logs/" + name + "/none":             "could not find the requested resource",
		"logs/?query=" + service + "%2f..":   "could not find the requested resource",
		"logs/?query=a%20b":                  "input contains unsupported characters",
		"logs/?query=" + service + "&boot=1": "must be less than 1",
	} {
		if got, err := e.Plane.Kubectl(t.Context(), "get", "--raw", "/api/v1/nodes/node-0/proxy/"+path); err == nil || !strings.Contains(got+err.Error(), want) {
			t.Errorf("/%s: %q, %v; want %q", path, got, err, want)
		}
	}
}

func proxyMetrics(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: BUSYBOX
    command: [sleep, "10000"]
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
`)
	e.untilPod(t, patience, ns, "probed", ready)
	wants(t, "metrics", e.proxied(t, "metrics"),
		`(?m)^# TYPE kubelet_node_name gauge$`, `(?m)^kubelet_node_name\{node="node-0"\} 1$`,
		`(?m)^kubelet_running_pods [1-9]`, `(?m)^kubelet_running_containers\{container_state="running"\} [1-9]`,
		`(?m)^kubelet_runtime_operations_total\{operation_type="run_podsandbox"\} [1-9]`,
		`(?m)^kubelet_http_requests_total\{.*path="metrics".*server_type="readwrite"\} [1-9]`,
		`(?m)^kubelet_pod_start_duration_seconds_count [1-9]`, `(?m)^rest_client_requests_total\{code="20[01]",.*\} [1-9]`,
		`(?m)^kubernetes_feature_enabled\{name="NodeLogQuery",.*\} 1$`)
	wants(t, "metrics/probes", e.proxied(t, "metrics/probes"), `(?m)^# TYPE prober_probe_total counter$`,
		`(?m)^prober_probe_total\{container="main",namespace="`+ns+`",pod="probed",pod_uid="[-0-9a-f]{36}",probe_type="Readiness",result="successful"\} [1-9]`)
}

// proxyPages: what the agent tells about itself.
func proxyPages(t *testing.T, e *env, _ string) {
	if got := e.proxied(t, "healthz"); got != "ok" {
		t.Errorf("/healthz: %q", got)
	}
	var config struct {
		Kubelet map[string]any `json:"kubeletconfig"`
	}
	if err := json.Unmarshal([]byte(e.proxied(t, "configz")), &config); err != nil {
		t.Fatal(err)
	}
	gates, _ := config.Kubelet["featureGates"].(map[string]any)
	if k := config.Kubelet; k["clusterDomain"] != "cluster.local" || k["enableSystemLogQuery"] != true || k["port"] != 10250.0 ||
		k["rotateCertificates"] != true || k["nodeStatusUpdateFrequency"] != "10s" || gates["ContainerCheckpoint"] != true {
		t.Errorf("/configz: %v", k)
	}
	for path, patterns := range map[string][]string{
		"statusz": {
			"kubelet statusz\n", `(?m)^Started: .* 20\d\d$`, `(?m)^Up: 0 hr 0\d min \d\d sec$`, `(?m)^Go version: go1\.`,
			`(?m)^Binary version: v1\.37\.`, `(?m)^Emulation version: 1\.37$`, `(?m)^Paths: .*/exec .*/healthz .*/metrics|(?m)^Paths: .*/exec .*/healthz`,
		},
		"flagz": {
			"kubelet flagz\n", `(?m)^hostname-override=node-0$`, `(?m)^root-dir=` + regexp.QuoteMeta(e.Nodes[0].Agent.Root) + `$`,
			`(?m)^node-ip=` + regexp.QuoteMeta(e.Nodes[0].Bed.NodeIP.String()) + `$`, `(?m)^v=4$`,
		},
		"debug/pprof/":                  {"goroutine", "heap", "profile"},
		"debug/pprof/goroutine?debug=2": {`goroutine \d+ \[`, `nodekit\.dev/node`, `net/http`},
		"debug/pprof/heap?debug=1":      {"^heap profile: \\d+: \\d+ ", "# runtime.MemStats"},
		"debug/pprof/cmdline":           {"--hostname-override=node-0"},
		"debug/pprof/symbol":            {"num_symbols: 1"},
		"debug/pprof/profile?seconds=1": {`^\x1f`},
		"debug/pprof/trace?seconds=1":   {"^go 1\\."},
		"debug/pprof/allocs?debug=0":    {`^\x1f`},
	} {
		wants(t, path, e.proxied(t, path), patterns...)
	}
}
