package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unitArgs are the arguments of the unit's ExecStart on a machine whose files
// stand below dir.
func unitArgs(t *testing.T, dir string) []string {
	t.Helper()
	unit, err := os.ReadFile("../../../examples/systemd/kubelet.service")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^Environment="(\w+)=(.*)"$`).FindAllStringSubmatch(string(unit), -1) {
		env[line[1]] = line[2]
	}
	for _, file := range regexp.MustCompile(`(?m)^EnvironmentFile=-(.*)$`).FindAllStringSubmatch(string(unit), -1) {
		text, err := os.ReadFile(filepath.Join(dir, file[1]))
		if err != nil {
			continue // the dash: it need not be there
		}
		for _, line := range regexp.MustCompile(`(?m)^(\w+)="(.*)"$`).FindAllStringSubmatch(string(text), -1) {
			env[line[1]] = line[2]
		}
	}
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/kubelet (.*)$`).FindStringSubmatch(string(unit))
	if start == nil {
		t.Fatal("no ExecStart")
	}
	args := os.Expand(start[1], func(name string) string { return env[name] })
	args = strings.NewReplacer("=/etc/", "="+dir+"/etc/", "=/var/", "="+dir+"/var/").Replace(args)
	return strings.Fields(args)
}

// A node that kubeadm set up starts under the unit, says that it is ready, and
// runs its static pods, although its control plane is not there yet.
func TestKubeadmNode(t *testing.T) {
	b := newBed(t)
	b.manifest(t)
	conf, err := os.ReadFile("../config/testdata/kubeadm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"var/lib/kubelet/config.yaml": string(conf),
		"var/lib/kubelet/kubeadm-flags.env": `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=` + b.endpoint +
			` --hostname-override=node1 --node-ip=192.0.2.1"` + "\n",
		"etc/kubernetes/bootstrap-kubelet.conf": "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
			"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {token: abcdef.0123456789abcdef}}]\n",
		// What differs is the bed: no systemd, no CA, no cgroups of its own.
		"etc/default/kubelet": `KUBELET_EXTRA_ARGS="--config-dir=` + b.dir + `/bed --root-dir=` + b.dir + `/root"` + "\n",
		"bed/10-bed.conf": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" +
			"cgroupDriver: cgroupfs\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\nfailCgroupV1: false\noomScoreAdj: 0\nhealthzPort: 0\n" +
			"authentication: {x509: null}\nmakeIPTablesUtilChains: false\naddress: 127.0.0.1\nport: " + freePort(t) + "\n" +
			"podLogsDir: " + b.dir + "/log/pods\nstaticPodPath: " + b.dir + "/manifests\n",
	} {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conn := manager(t, b.dir)
	logs, stop := start(t, unitArgs(t, b.dir))
	if got := heard(t, conn); got != "READY=1" {
		t.Errorf("heard %q", got)
	}
	b.awaitRunning(t)
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(logs.String(), "no effect yet") {
		t.Errorf("a plain node of kubeadm has a setting without effect:\n%s", logs)
	}
}
