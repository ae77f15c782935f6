package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"nodekit.dev/test/integration/testbed"
)

// TestMain keeps these tests, which change units and end pods, from other
// machines.
func TestMain(m *testing.M) {
	if os.Getenv("NODEKIT_VM") == "" {
		fmt.Println("these tests run inside of a virtual machine: make vm")
		return
	}
	os.Exit(m.Run())
}

// command runs a program and returns what it printed.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

func mustRun(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// patience is for what takes a second on a machine that is not emulated, by one
// that is busy.
const patience = 4 * time.Minute

// eventually fails the test when check still returns an error after patience.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := testbed.Eventually(ctx, 500*time.Millisecond, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// properties are what systemd says of a unit.
func properties(ctx context.Context, unit string, names ...string) (map[string]string, error) {
	out, err := command(ctx, "systemctl", "show", "-p", strings.Join(names, ","), unit)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		found[name] = value
	}
	return found, nil
}

// wantProperties compares what systemd says of a unit.
func wantProperties(t *testing.T, unit string, want map[string]string) {
	t.Helper()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	got, err := properties(t.Context(), unit, names...)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("systemd says of %s: %s=%s, want %s", unit, name, got[name], value)
		}
	}
}
