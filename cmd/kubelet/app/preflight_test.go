package app

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stockNode is what a stock kubelet of a cluster with static pods left behind.
func stockNode(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	kubeletYAML = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	staticWeb   = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: 'web:1'}]}\n"
)

// preflightOf runs preflight and returns the lines by their name.
func preflightOf(t *testing.T, dir string, args ...string) (code int, lines map[string]string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"--preflight", "--config=" + filepath.Join(dir, "kubelet.yaml"), "--root-dir=" + filepath.Join(dir, "root"),
		"--hostname-override=node1", "--node-ip=192.0.2.1"}, args...)
	code = Run(t.Context(), args, &out, &errs)
	if errs.Len() > 0 {
		t.Errorf("standard error: %s", &errs)
	}
	lines = map[string]string{}
	for line := range strings.Lines(out.String()) {
		columns := strings.Fields(line)
		if len(columns) < 3 {
			continue
		}
		key := columns[2]
		if columns[1] == "static" { // "static pod"
			key = columns[3]
		}
		lines[strings.TrimPrefix(key, dir+"/")] = strings.Join(columns, " ")
	}
	if !strings.HasSuffix(out.String(), "Nothing was changed.\n") {
		t.Errorf("the last line is missing:\n%s", &out)
	}
	return code, lines
}

func TestPreflight(t *testing.T) {
	dir := stockNode(t, map[string]string{
		"kubelet.yaml": kubeletYAML + "staticPodPath: manifests\nclusterDNS: [10.96.0.10]\ncgroupDriver: systemd\nevictionSoft: {memory.available: 1Gi}\nsyncFrequency: 30s\nhairpinMode: none\nmaxPod: 3\n" +
			"nodeStatusMaxImages: -2\nfeatureGates: {EventedPLEG: true, NodeSwap: true, StorageVersionAPI: true, NodeLogQuery: true, AllBeta: true, RuntimeClass: true}\n",
		"manifests/web.yaml":                              staticWeb,
		"manifests/gpu.yaml":                              strings.NewReplacer("name: web", "name: gpu", "image: 'web:1'", "image: 'web:1', resources: {claims: [{name: gpu}]}").Replace(staticWeb),
		"manifests/broken.yaml":                           "kind: [",
		"root/cpu_manager_state":                          `{"policyName":"static","defaultCpuSet":"0-1"}`,
		"root/memory_manager_state":                       `{"policyName":"None"}`,
		"root/device-plugins/kubelet_internal_checkpoint": `{"Data":{"PodDeviceEntries":[{"PodUID":"u","ResourceName":"example.com/gpu"}]}}`,
		"root/pods/1234/etc-hosts":                        "",
	})
	code, lines := preflightOf(t, dir, "--network_plugin", "cni", "--max-pods=7", "-v", "2", "--maximum-dead-containers=3",
		"--runtime-cgroups=/r", "--cluster-domain", "a.example", "--image-gc-high-threshold=90", "--port=x", "extra")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	for name, want := range map[string]string{
		"--network-plugin":          "unsupported flag --network-plugin Removed in v1.24 with dockershim.",
		"--v":                       "same flag --v",
		"--cluster-domain":          "same flag --cluster-domain",
		"--maximum-dead-containers": "different flag --maximum-dead-containers dead containers are removed when",
		"--runtime-cgroups":         "different flag --runtime-cgroups",
		"--image-gc-high-threshold": "unsupported flag --image-gc-high-threshold runtime/images does not do it yet",
		"--port=x":                  `unsupported flag --port=x invalid argument "x" for "--port" flag: want a whole number`,
		"extra":                     "unsupported flag extra the kubelet takes no arguments",
		"clusterDNS":                "same field clusterDNS",
		"cgroupDriver":              "same field cgroupDriver",
		"evictionSoft":              "unsupported field evictionSoft resources does not do it yet",
		"syncFrequency":             "different field syncFrequency every pod is looked at",
		"hairpinMode":               "same field hairpinMode",
		"maxPod":                    "same field maxPod",
		"nodeStatusMaxImages":       "unsupported field nodeStatusMaxImages invalid configuration:",
		"EventedPLEG":               "same gate EventedPLEG",
		"StorageVersionAPI":         "same gate StorageVersionAPI no part of a node depends on",
		"AllBeta":                   "unsupported gate AllBeta setting all BETA gates to true leaves out",
		"NodeLogQuery":              "same gate NodeLogQuery feature gate NodeLogQuery is GA: it will be removed",
		"NodeSwap":                  "unsupported gate NodeSwap feature gate NodeSwap is on by default in v1.37, but resources",
		"RuntimeClass":              "unsupported gate RuntimeClass unrecognized feature gate: RuntimeClass Feature gate RuntimeClass was removed",
		"default/web-node1":         "same static pod default/web-node1",
		"default/gpu-node1":         "unsupported static pod default/gpu-node1 spec.containers[0].resources.claims",
		"manifests/broken.yaml":     "unsupported static pod",
		"root/cpu_manager_state":    "unsupported state",
		"root/memory_manager_state": "same state",
		"root/device-plugins/kubelet_internal_checkpoint": "unsupported state",
		"root/pods/1234": "same state",
	} {
		got := strings.ReplaceAll(lines[name], dir+"/", "")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q...", name, got, want)
		}
	}
}

// Nothing is written, and a node that uses nothing special is fine.
func TestPreflightTouchesNothing(t *testing.T) {
	dir := stockNode(t, map[string]string{
		"kubelet.yaml":       kubeletYAML + "staticPodPath: manifests\nhealthzPort: 0\nimageGCHighThresholdPercent: 0\ncpuManagerReconcilePeriod: 0s\nmemorySwap: {}\n",
		"manifests/web.yaml": staticWeb,
	})
	before := tree(t, dir)
	code, lines := preflightOf(t, dir)
	if after := tree(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	// 0 is a value of imageGCHighThresholdPercent, a pointer: it counts as set.
	if want := "unsupported field imageGCHighThresholdPercent"; code != 1 || !strings.HasPrefix(lines["imageGCHighThresholdPercent"], want) {
		t.Errorf("exit code %d, %q", code, lines["imageGCHighThresholdPercent"])
	}
	if err := os.WriteFile(filepath.Join(dir, "kubelet.yaml"), []byte(kubeletYAML+"staticPodPath: manifests\ncpuManagerReconcilePeriod: 0s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, lines := preflightOf(t, dir); code != 0 {
		t.Errorf("exit code %d: %v", code, lines)
	}
}

// tree lists files with their sizes and times.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out.WriteString(path + " " + info.ModTime().Format(time.RFC3339Nano) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
