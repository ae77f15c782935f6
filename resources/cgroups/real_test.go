package cgroups

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodekit.dev/internal/needtest"
	"nodekit.dev/internal/reasoned"
)

// needsRealCgroups skips where the machine's own cgroups can not be changed.
func needsRealCgroups(t *testing.T) {
	t.Helper()
	why := ""
	if os.Getuid() != 0 {
		why = "needs root: makes cgroups on this machine"
	} else if _, err := hierarchies(Default().Mount); err != nil {
		why = fmt.Sprintf("needs mounted cgroups: %v", err)
	}
	if why != "" {
		needtest.SkipOrFail(t, why)
	}
}

// realManager works below a cgroup root of its own, removed at the end.
func realManager(t *testing.T, change func(*Config)) *Manager {
	t.Helper()
	needsRealCgroups(t)
	m, logged := newManager(t, func(c *Config) {
		c.Names.Root = fmt.Sprintf("/nodekit-test-%d-%s", os.Getpid(), t.Name())
		change(c)
	})
	t.Cleanup(func() {
		trees, err := hierarchies(m.cfg.Mount)
		if err != nil {
			t.Error(err)
		}
		for _, tree := range trees {
			if err := removeOnce(filepath.Join(tree.dir, m.cfg.Names.Root)); err != nil {
				t.Error(err)
			}
		}
		t.Logf("logged: %s", logged)
	})
	return m
}

// realDirs are the pod's cgroups that exist.
func realDirs(t *testing.T, m *Manager, uid string) []string {
	t.Helper()
	trees, err := hierarchies(m.cfg.Mount)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, tree := range trees {
		for _, path := range m.cfg.Names.Candidates(uid) {
			if _, err := os.Stat(filepath.Join(tree.dir, path)); err == nil {
				out = append(out, filepath.Join(tree.dir, path))
			}
		}
	}
	return out
}

func TestRealEnsureSetsLimits(t *testing.T) {
	m := realManager(t, func(c *Config) { c.PodPids = 50 })
	pod := burstable("real-1")
	for range 2 {
		if err := m.Ensure(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	dirs := realDirs(t, m, "real-1")
	if len(dirs) == 0 {
		t.Fatal("no cgroup was made")
	}
	// Under either version; those of the other do not exist.
	wants := map[string]string{
		"memory.limit_in_bytes": "67108864", "cpu.shares": "256", "cpu.cfs_quota_us": "50000",
		"memory.max": "67108864", "cpu.weight": "10", "cpu.max": "50000 100000", "pids.max": "50",
	}
	checked := 0
	for _, dir := range dirs {
		for file, want := range wants {
			got, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				continue
			}
			checked++
			if strings.TrimSpace(string(got)) != want {
				t.Errorf("%s/%s is %s, want %s", dir, file, got, want)
			}
		}
	}
	if checked == 0 {
		t.Error("no limit could be read back")
	}
	// A limit that the spec drops is lifted.
	pod.Spec.Containers[0].Resources.Limits = nil
	if err := m.Ensure(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if got, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us")); err == nil && strings.TrimSpace(string(got)) != "-1" {
			t.Errorf("quota is still %s", got)
		}
	}
	if err := m.Remove(t.Context(), "real-1"); err != nil {
		t.Fatal(err)
	}
	if left := realDirs(t, m, "real-1"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// tenant is a process in a container's cgroup of the pod, in every hierarchy.
type tenant struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func moveIn(t *testing.T, m *Manager, uid string) *tenant {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range realDirs(t, m, uid) {
		container := filepath.Join(dir, "container")
		if err := os.Mkdir(container, 0o755); err != nil {
			t.Fatal(err)
		}
		tree := hierarchy{controllers: []string{"cpuset"}}
		if err := tree.prepare(container); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := writeFile(filepath.Join(container, "cgroup.procs"), strconv.Itoa(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
	}
	return &tenant{cmd, stdin}
}

func (p *tenant) leave(t *testing.T) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A process that does not leave is killed: the runtime forgot it when its start
// was cut off.
func TestRealRemoveKillsWhatIsLeft(t *testing.T) {
	m := realManager(t, func(c *Config) { c.KillAfter = 20 * time.Millisecond })
	if err := m.Ensure(t.Context(), burstable("real-2")); err != nil {
		t.Fatal(err)
	}
	tenant := moveIn(t, m, "real-2")
	ended := make(chan error, 1)
	go func() { ended <- tenant.cmd.Wait() }() // a zombie keeps its cgroup busy
	if err := m.Remove(t.Context(), "real-2"); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended with %v", err)
	}
	if left := realDirs(t, m, "real-2"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// Until KillAfter nothing is killed, and a cgroup that stays busy is an error
// that names who is in it.
func TestRealRemoveOfABusyCgroup(t *testing.T) {
	m := realManager(t, func(c *Config) { c.KillAfter, c.BusyWait = time.Minute, 50*time.Millisecond })
	if err := m.Ensure(t.Context(), burstable("real-5")); err != nil {
		t.Fatal(err)
	}
	tenant := moveIn(t, m, "real-5")
	err := m.Remove(t.Context(), "real-5")
	if reasoned.Reason(err, "") != "CgroupBusy" || !strings.Contains(err.Error(), strconv.Itoa(tenant.cmd.Process.Pid)) {
		t.Errorf("Remove of a busy cgroup says %v", err)
	}
	tenant.leave(t) // fails if the process was killed
	if err := m.Remove(t.Context(), "real-5"); err != nil {
		t.Error(err)
	}
}

func TestRealRemoveWaitsForTheLast(t *testing.T) {
	m := realManager(t, func(c *Config) { c.KillAfter, c.BusyWait = time.Minute, time.Minute })
	if err := m.Ensure(t.Context(), burstable("real-3")); err != nil {
		t.Fatal(err)
	}
	tenant := moveIn(t, m, "real-3")
	done := make(chan error, 1)
	go func() { done <- m.Remove(t.Context(), "real-3") }()
	tenant.leave(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if left := realDirs(t, m, "real-3"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestRealRemoveEndsWithItsContext(t *testing.T) {
	m := realManager(t, func(c *Config) { c.KillAfter, c.BusyWait = time.Minute, time.Minute })
	if err := m.Ensure(t.Context(), burstable("real-4")); err != nil {
		t.Fatal(err)
	}
	tenant := moveIn(t, m, "real-4")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := m.Remove(ctx, "real-4"); err == nil {
		t.Error("no error though a process is still there")
	}
	tenant.leave(t)
	if err := m.Remove(t.Context(), "real-4"); err != nil {
		t.Error(err)
	}
}
