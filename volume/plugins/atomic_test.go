package plugins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func text(pairs ...string) payload {
	p := payload{}
	for i := 0; i < len(pairs); i += 2 {
		p[pairs[i]] = file{data: []byte(pairs[i+1]), mode: 0o644}
	}
	return p
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func mustWrite(t testing.TB, w writer, p payload, wantChange bool) {
	t.Helper()
	if changed, err := w.write(p); err != nil || changed != wantChange {
		t.Fatalf("changed %v, %v; want %v", changed, err, wantChange)
	}
}

// visible reads the volume as a user sees it: "path=content", sorted, without
// what begins with "..".
func visible(t testing.TB, dir string) string {
	t.Helper()
	var list []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		at, err := filepath.EvalSymlinks(filepath.Join(dir, entry.Name()))
		if err != nil {
			list = append(list, entry.Name()+" dangles")
			continue
		}
		_ = filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				data, _ := os.ReadFile(path)
				list = append(list, strings.Replace(path, at, entry.Name(), 1)+"="+string(data))
			}
			return err
		})
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// inner lists what begins with "..", with the stamp of versions left out.
func inner(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case strings.HasPrefix(name, "..2"):
			list = append(list, "..VERSION")
		case strings.HasPrefix(name, ".."):
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func wantVolume(t testing.TB, dir, want string) {
	t.Helper()
	if got := visible(t, dir); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := inner(t, dir); !slices.Equal(got, []string{"..VERSION", "..data"}) {
		t.Errorf("left over: %v", got)
	}
}

func TestWriteVersions(t *testing.T) {
	dir := t.TempDir()
	w := writer{root: openRoot(t, dir)}
	for _, step := range []struct {
		p      payload
		change bool
		want   string
	}{
		{text("a", "1", "sub/x", "2", "sub/deep/y", "3"), true, "a=1 sub/deep/y=3 sub/x=2"},
		{text("a", "1", "sub/x", "2", "sub/deep/y", "3"), false, "a=1 sub/deep/y=3 sub/x=2"},
		{text("a", "2", "sub/x", "2"), true, "a=2 sub/x=2"},
		{text("b", "2", "sub/x", "2"), true, "b=2 sub/x=2"},
		{text(), true, ""},
		{text(), false, ""},
		{text("sub", "now a file"), true, "sub=now a file"},
	} {
		mustWrite(t, w, step.p, step.change)
		wantVolume(t, dir, step.want)
	}
	target, err := os.Readlink(filepath.Join(dir, "sub"))
	if err != nil || target != "..data/sub" {
		t.Errorf("%s, %v", target, err)
	}
}

func TestModesAndOwners(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	dir := t.TempDir()
	w := writer{root: openRoot(t, dir)}
	p := payload{"x": {mode: 0o750}, "s/r": {mode: 0o400}}
	owner := -1
	if os.Geteuid() == 0 {
		user, group := int64(1234), int64(4321)
		w.group = &group
		p["mine"] = file{mode: 0o600, user: &user}
		owner = 1234
	}
	mustWrite(t, w, p, true)
	modes := map[string]fs.FileMode{"x": 0o750, "s/r": 0o400, "s": fs.ModeDir | 0o755, "..data": fs.ModeDir | 0o755}
	if owner > 0 { // the group reads all
		modes = map[string]fs.FileMode{
			"x": 0o750, "s/r": 0o440, "mine": 0o640,
			"s": fs.ModeDir | fs.ModeSetgid | 0o755, "..data": fs.ModeDir | fs.ModeSetgid | 0o755,
		}
	}
	for name, want := range modes {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, info, err, want)
		}
	}
	if owner > 0 {
		var st unix.Stat_t
		for name, uid := range map[string]uint32{"mine": 1234, "x": 0, "s": 0} {
			if err := unix.Stat(filepath.Join(dir, name), &st); err != nil || st.Gid != 4321 || st.Uid != uid {
				t.Errorf("%s belongs to %d:%d, %v", name, st.Uid, st.Gid, err)
			}
		}
		if err := unix.Lstat(filepath.Join(dir, "mine"), &st); err != nil || st.Gid != 4321 || st.Uid != 1234 {
			t.Errorf("the link belongs to %d:%d, %v", st.Uid, st.Gid, err)
		}
	}
}

// What a call left that was cut short at any place, the next one mends.
func TestWriteAfterACrash(t *testing.T) {
	old := text("a", "1", "b", "1")
	for name, leave := range map[string]func(dir string) error{
		"nothing at all":     func(string) error { return nil },
		"a version unlinked": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "..2026_01_01_00_00_00.1/sub"), 0o700) },
		"the new link":       func(dir string) error { return os.Symlink("..2026_01_01_00_00_00.1", filepath.Join(dir, "..data_tmp")) },
		"links without data": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "..data")), os.Remove(filepath.Join(dir, "a")), os.Symlink("..data/a", filepath.Join(dir, "a")))
		},
		"a link missing":      func(dir string) error { return os.Remove(filepath.Join(dir, "a")) },
		"a link too many":     func(dir string) error { return os.Symlink("..data/z", filepath.Join(dir, "z")) },
		"data leads nowhere":  func(dir string) error { return relink(dir, "..2026_01_01_00_00_00.9") },
		"data leads out":      func(dir string) error { return relink(dir, "../../etc") },
		"a file was tampered": func(dir string) error { return os.WriteFile(filepath.Join(dir, "..data/a"), []byte("no"), 0o600) },
		"a file became a link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "..data/a")), os.Symlink("/etc/passwd", filepath.Join(dir, "..data/a")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := writer{root: openRoot(t, dir)}
			mustWrite(t, w, old, true)
			if err := leave(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := w.write(old); err != nil {
				t.Fatal(err)
			}
			wantVolume(t, dir, "a=1 b=1")
			if _, err := w.write(text("a", "2")); err != nil {
				t.Fatal(err)
			}
			wantVolume(t, dir, "a=2")
		})
	}
}

func relink(dir, target string) error {
	data := filepath.Join(dir, "..data")
	return errors.Join(os.Remove(data), os.Symlink(target, data))
}

// Whoever reads through ..data, opened once, sees one version only.
func TestReadersSeeOneVersion(t *testing.T) {
	dir := t.TempDir()
	w := writer{root: openRoot(t, dir)}
	mustWrite(t, w, text("a", "0", "b", "0"), true)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				version, err := os.OpenRoot(filepath.Join(dir, "..data"))
				if errors.Is(err, fs.ErrNotExist) {
					continue // the old version went while its name was being resolved
				}
				if err != nil {
					t.Error(err)
					return
				}
				a, err1 := version.ReadFile("a")
				b, err2 := version.ReadFile("b")
				version.Close()
				if err1 == nil && err2 == nil && string(a) != string(b) {
					t.Errorf("a is %s, b is %s", a, b)
				}
			}
		})
	}
	for i := 1; i <= 200; i++ {
		mustWrite(t, w, text("a", fmt.Sprint(i), "b", fmt.Sprint(i)), true)
	}
	close(stop)
	readers.Wait()
}

func TestNothingIsWrittenThroughSymlinks(t *testing.T) {
	base := t.TempDir()
	dir, outside := filepath.Join(base, "volume"), filepath.Join(base, "outside")
	for _, d := range []string{dir, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "keep"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"..data", "..2026_01_01_00_00_00.7", "a", "..x"} {
		if err := os.Symlink("../outside", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w := writer{root: openRoot(t, dir)}
	if _, err := w.write(text("b", "1", "c/d", "1")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}
