package wire

import (
	"errors"
	"os"
	"strings"
	"testing"

	"nodekit.dev/internal/needtest"
)

// The device takes nothing, like a file on a full disk.
func TestLockOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		needtest.SkipOrFail(t, "no device that is always full: "+err.Error())
	}
	defer full.Close()
	if err := sign(full, "node"); err != nil {
		t.Errorf("the agent would not start: %v", err)
	}
}

func TestLockIsSigned(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/"+lockName, []byte(strings.Repeat("an older and longer owner", 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	unlock, err := Lock(dir, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Lock(dir, "node-b"); !errors.As(err, &locked) || !strings.HasPrefix(locked.Owner, "node-a (pid ") || strings.Contains(locked.Owner, "older") {
		t.Errorf("got %v", err)
	}
	if err := os.Truncate(dir+"/"+lockName, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir, "node-b"); !errors.As(err, &locked) || locked.Owner != "unknown" {
		t.Errorf("got %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
