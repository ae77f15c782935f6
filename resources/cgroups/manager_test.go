package cgroups

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/resources"
)

func burstable(uid string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("64Mi")},
		},
	}}}}
	pod.UID = types.UID(uid)
	return pod
}

func newManager(t *testing.T, change func(*Config)) (*Manager, *bytes.Buffer) {
	t.Helper()
	cfg := Default()
	change(&cfg)
	var logged bytes.Buffer
	m, err := New(cfg, nil, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return m, &logged
}

// fakeFiles makes empty files, as the kernel does in a cgroup.
func fakeFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(text)
	}
	return out
}

func TestEnsureV2(t *testing.T) {
	mount := t.TempDir()
	pod := filepath.Join(mount, "kubepods/burstable/poduid-1")
	fakeFiles(t, pod, "cgroup.controllers", "cgroup.subtree_control", "cpu.weight", "cpu.max", "memory.max", "pids.max",
		"hugetlb.2MB.max", "hugetlb.2MB.rsvd.max")
	for _, dir := range []string{mount, filepath.Join(mount, "kubepods"), filepath.Join(mount, "kubepods/burstable")} {
		fakeFiles(t, dir, "cgroup.subtree_control")
		if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpu\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, logged := newManager(t, func(c *Config) { c.Mount, c.PodPids = mount, 100 })
	for range 2 {
		if err := m.Ensure(t.Context(), burstable("uid-1")); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"cgroup.controllers": "", "cgroup.subtree_control": "",
		"cpu.weight": "10", "cpu.max": "50000 100000", "memory.max": "67108864", "pids.max": "100",
		"hugetlb.2MB.max": "0", "hugetlb.2MB.rsvd.max": "",
	}
	if diff := cmp.Diff(want, contents(t, pod)); diff != "" {
		t.Errorf("pod cgroup (-want +got):\n%s", diff)
	}
	if got := contents(t, filepath.Join(mount, "kubepods"))["cgroup.subtree_control"]; got != "+cpu" {
		t.Errorf("kubepods hands on %q", got)
	}
	if logged.Len() > 0 {
		t.Errorf("unexpected warnings: %s", logged)
	}
}

func TestEnsureToleratesMissingControllers(t *testing.T) {
	mount := t.TempDir()
	fakeFiles(t, mount, "cgroup.controllers", "cgroup.subtree_control")
	m, logged := newManager(t, func(c *Config) { c.Mount = mount })
	// The fake tree grows no files in new directories: every limit is missing.
	for _, dir := range []string{"kubepods", "kubepods/burstable"} {
		fakeFiles(t, filepath.Join(mount, dir), "cgroup.controllers", "cgroup.subtree_control")
	}
	pod := burstable("uid-1")
	pod.Spec.Containers[0].Resources.Limits["hugepages-2Mi"] = resource.MustParse("4Mi")
	for range 2 {
		if err := m.Ensure(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	for _, controller := range []string{"cpu", "memory", "hugetlb"} {
		if n := strings.Count(logged.String(), "controller="+controller+" "); n != 1 {
			t.Errorf("%d warnings for %s, want 1:\n%s", n, controller, logged)
		}
	}
}

func TestV1CpusetIsFilledFromAbove(t *testing.T) {
	mount := t.TempDir()
	tree := filepath.Join(mount, "cpuset")
	fakeFiles(t, tree, "cgroup.procs")
	write := func(path, text string) {
		if err := os.WriteFile(filepath.Join(tree, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cpuset.cpus", "0-3\n")
	write("cpuset.mems", "0\n")
	for _, dir := range []string{"kubepods", "kubepods/burstable", "kubepods/burstable/poduid-1"} {
		fakeFiles(t, filepath.Join(tree, dir), "cpuset.cpus", "cpuset.mems")
	}
	write("kubepods/burstable/cpuset.cpus", "1\n") // set by someone: kept
	m, _ := newManager(t, func(c *Config) { c.Mount = mount })
	if err := m.Ensure(t.Context(), burstable("uid-1")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cpuset.cpus": "1", "cpuset.mems": "0"}
	if diff := cmp.Diff(want, contents(t, filepath.Join(tree, "kubepods/burstable/poduid-1"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHierarchies(t *testing.T) {
	mount := t.TempDir()
	fakeFiles(t, filepath.Join(mount, "cpu,cpuacct"), "cgroup.procs")
	fakeFiles(t, filepath.Join(mount, "unified"), "cgroup.procs", "cgroup.controllers")
	fakeFiles(t, filepath.Join(mount, "unrelated"), "readme")
	if err := os.Symlink("cpu,cpuacct", filepath.Join(mount, "cpu")); err != nil {
		t.Fatal(err)
	}
	got, err := hierarchies(mount)
	if err != nil {
		t.Fatal(err)
	}
	want := []hierarchy{
		{dir: filepath.Join(mount, "cpu,cpuacct"), controllers: []string{"cpu", "cpuacct"}},
		{dir: filepath.Join(mount, "unified"), unified: true, isSpare: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := hierarchies(filepath.Join(mount, "unrelated")); err == nil {
		t.Error("a directory without cgroups is no error")
	}
}

func TestSettingsV1(t *testing.T) {
	tree := hierarchy{controllers: []string{"cpu", "memory", "pids"}}
	limited := Wanted{Limits: resources.Limits{CPUShares: 256, CPUQuota: 50000, CPUPeriod: 100000, Memory: 1 << 20}, Pids: 7}
	free := Wanted{Limits: resources.Limits{CPUShares: 2}}
	for name, tc := range map[string]struct {
		wanted Wanted
		want   []setting
	}{
		"limited": {limited, []setting{
			{"cpu", "cpu.shares", "256"}, {"cpu", "cpu.cfs_period_us", "100000"}, {"cpu", "cpu.cfs_quota_us", "50000"},
			{"memory", "memory.limit_in_bytes", "1048576"}, {"pids", "pids.max", "7"},
		}},
		"free": {free, []setting{
			{"cpu", "cpu.shares", "2"}, {"cpu", "cpu.cfs_quota_us", "-1"}, {"memory", "memory.limit_in_bytes", "-1"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tree.settings(t.TempDir(), tc.wanted), cmp.AllowUnexported(setting{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemoveFindsThePodInAnyClass(t *testing.T) {
	mount := t.TempDir()
	fakeFiles(t, filepath.Join(mount, "memory"), "cgroup.procs")
	for _, parent := range []string{"kubepods", "kubepods/burstable", "kubepods/besteffort"} {
		deep := filepath.Join(mount, "memory", parent, "poduid-1", "container", "nested")
		if err := os.MkdirAll(deep, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m, _ := newManager(t, func(c *Config) { c.Mount = mount })
	for range 2 { // the second finds nothing, which is fine
		if err := m.Remove(t.Context(), "uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(mount, "memory/kubepods/*/pod*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(mount, "memory/kubepods/burstable")); err != nil {
		t.Errorf("the class's own cgroup is gone: %v", err)
	}
}

func TestPodUIDs(t *testing.T) {
	cfg := Default()
	cfg.Mount, cfg.Names.Root = t.TempDir(), "/agent"
	if uids, err := PodUIDs(cfg); err == nil {
		t.Errorf("found %q where nothing is mounted", uids)
	}
	fakeFiles(t, filepath.Join(cfg.Mount, "memory"), "cgroup.procs")
	fakeFiles(t, filepath.Join(cfg.Mount, "cpu"), "cgroup.procs")
	if uids, err := PodUIDs(cfg); err != nil || len(uids) > 0 {
		t.Errorf("before any pod: %q, %v", uids, err)
	}
	for _, dir := range []string{
		"memory/agent/kubepods/poda-1", "cpu/agent/kubepods/poda-1/container/podnested", "cpu/agent/kubepods/burstable/podb",
		"memory/agent/kubepods/besteffort/podc", "memory/agent/kubepods/besteffort/other", "memory/kubepods/podd", "memory/agent/pode",
	} {
		if err := os.MkdirAll(filepath.Join(cfg.Mount, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if uids, err := PodUIDs(cfg); err != nil || !slices.Equal(uids, []string{"a-1", "b", "c"}) {
		t.Errorf("found %q, %v", uids, err)
	}
}

func TestUIDsThatLeadElsewhereAreRefused(t *testing.T) {
	m, _ := newManager(t, func(c *Config) { c.Mount = t.TempDir() })
	for _, uid := range []string{"", "..", "../x", "a/b", "/", "."} {
		if err := m.Remove(t.Context(), uid); err == nil {
			t.Errorf("Remove(%q) is no error", uid)
		}
		if err := m.Ensure(t.Context(), burstable(uid)); err == nil {
			t.Errorf("Ensure(%q) is no error", uid)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"mount":   func(c *Config) { c.Mount = "cgroup" },
		"systemd": func(c *Config) { c.Names.Driver = resources.Systemd },
		"root":    func(c *Config) { c.Names.Root = "x/../y" },
		"pids":    func(c *Config) { c.PodPids = -1 },
	} {
		cfg := Default()
		change(&cfg)
		if _, err := New(cfg, nil, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
