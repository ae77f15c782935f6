package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestWriteReplacesWholeFileAndKeepsPerm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for _, content := range []string{"a long first content", "short"} {
		if err := Write(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("read %q, %v; want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Fatalf("perm %v, %v", info.Mode(), err)
	}
	onlyEntry(t, filepath.Dir(path), "state")
}

func TestFailedWriteLeavesOldContentAndNoTemp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	// The target is a directory that is not empty, so the rename must fail.
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Write(path, []byte("x"), 0o600)
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("error %v does not name %s", err, path)
	}
	onlyEntry(t, dir, "state")
}

func TestConcurrentWritersNeverTear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			data := []byte(strings.Repeat(fmt.Sprint(i), 4096))
			if err := WriteChecked(path, data, 0o600); err != nil {
				t.Error(err)
			}
			if got, err := ReadChecked(path); err != nil || len(got) != 4096 {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
		})
	}
	wg.Wait()
}

func TestSweepRemovesOnlyLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".state" + tempMark + "123", ".hidden", "state"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 || entries[0].Name() != ".hidden" || entries[1].Name() != "state" {
		t.Fatalf("left: %v", entries)
	}
	if err := Sweep(filepath.Join(dir, "missing")); err != nil {
		t.Fatalf("missing dir: %v", err)
	}
}

func TestReadCheckedNamesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := WriteChecked(path, []byte(`{"pods":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		content string
		why     string
	}{
		"empty":           {"", "foreign"},
		"foreign":         {`{"pods":3}`, "foreign"},
		"torn in header":  {string(intact[:len(header)+5]), "torn"},
		"torn in data":    {string(intact[:len(intact)-1]), "torn"},
		"edited":          {strings.Replace(string(intact), "3", "4", 1), ""},
		"zeroes appended": {string(intact) + "\x00\x00", "torn"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadChecked(path)
			var damaged *DamagedError
			if !errors.As(err, &damaged) || damaged.Path != path || !strings.Contains(damaged.Why, c.why) {
				t.Fatalf("got %v, want a DamagedError about %q", err, c.why)
			}
		})
	}
	if _, err := ReadChecked(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("missing file: %v", err)
	}
}

func TestEveryTruncationIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := WriteChecked(path, []byte("line one\nline two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	intact, _ := os.ReadFile(path)
	for n := range intact {
		if err := os.WriteFile(path, intact[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *DamagedError
		if _, err := ReadChecked(path); !errors.As(err, &damaged) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

func TestSetAsideKeepsEarlierOnesAndIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	for i := range keptAside + 3 {
		if err := os.WriteFile(path, fmt.Append(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := SetAside(path, "damaged"); err != nil {
			t.Fatal(err)
		}
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != keptAside {
		t.Fatalf("%d files kept, want %d", len(entries), keptAside)
	}
	first, _ := os.ReadFile(path + ".damaged")
	if string(first) != "0" {
		t.Fatalf("the first damaged file was overwritten by %q", first)
	}
	if _, err := SetAside(path, "damaged"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("nothing to set aside: %v", err)
	}
}

func onlyEntry(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Fatalf("entries %v, %v; want only %s", entries, err, name)
	}
}
