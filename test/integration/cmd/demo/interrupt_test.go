package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"nodekit.dev/test/integration/testbed"
)

// demoEnv makes this test binary the demo itself, for a real Ctrl-C.
const demoEnv = "NODEKIT_TEST_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(demoEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestCtrlC: the demo that has shown all it has runs until Ctrl-C, ends without
// an error, and leaves nothing.
func TestCtrlC(t *testing.T) {
	testbed.Require(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-manifests", samples)
	cmd.Env = append(os.Environ(), demoEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	lines := bufio.NewScanner(out)
	logsTo := regexp.MustCompile(`the agent logs to (\S+)\.$`)
	bed := ""
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if found := logsTo.FindStringSubmatch(lines.Text()); found != nil {
			bed = filepath.Dir(found[1])
			if _, err := os.Stat(found[1]); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || bed == "" || !strings.Contains(text.String(), "Removing all that was made") {
		t.Fatalf("%v, bed %q:\n%s", err, bed, &text)
	}
	wantNothingOf(t, bed)
}

// wantNothingOf fails where a file, a mount or a process of the bed is left.
func wantNothingOf(t *testing.T, bed string) {
	t.Helper()
	if _, err := os.Lstat(bed); err == nil {
		t.Errorf("%s is left over", bed)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), bed+"/") {
		t.Errorf("mounts are left over (%v):\n%s", err, mounts)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(commands) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	for _, command := range commands {
		if line, _ := os.ReadFile(command); strings.Contains(string(line), bed+"/") {
			t.Errorf("%s still runs: %q", command, line)
		}
	}
}
