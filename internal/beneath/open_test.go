package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// openers are both ways to open; each must hold the same promises.
func openers() map[string]opener {
	return map[string]opener{"openat2": openBeneath, "walk": walkBeneath}
}

func tree(t *testing.T) (root *os.File, dir, outside string) {
	t.Helper()
	base := t.TempDir()
	dir, outside = filepath.Join(base, "volume"), filepath.Join(base, "outside")
	for _, d := range []string{filepath.Join(dir, "a/b"), filepath.Join(outside, "secret")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"up": "../outside", "abs": outside, "a/in": "b", "a/root": "..", "gone": "nowhere", "a/far": "../../outside/secret",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir, outside
}

func TestOpenOrMkdir(t *testing.T) {
	for name, by := range openers() {
		for _, tc := range []struct {
			rel     string
			want    string // path below the volume that it must be; empty: an error
			wantErr error
			walkErr error // where the walk differs: it refuses symlinks
		}{
			{rel: "", want: "."},
			{rel: "a/b", want: "a/b"},
			{rel: "./a//b/", want: "a/b"},
			{rel: "a/file", want: "a/file"},
			{rel: "a/in", want: "a/b", walkErr: unix.ELOOP},
			{rel: "a/root/a", want: "a", walkErr: unix.ELOOP},
			{rel: "new/deep/er", want: "new/deep/er"},
			{rel: "a/in/made", want: "a/b/made", walkErr: unix.ELOOP},
			{rel: "a/file/x", wantErr: unix.ENOTDIR},
			{rel: "gone", wantErr: unix.ENOENT, walkErr: unix.ELOOP},
			{rel: "up/x", wantErr: ErrEscapes, walkErr: unix.ELOOP},
			{rel: "abs/x", wantErr: ErrEscapes, walkErr: unix.ELOOP},
			{rel: "a/far", wantErr: ErrEscapes, walkErr: unix.ELOOP},
			{rel: "../outside", wantErr: ErrEscapes},
			{rel: "a/../../outside", wantErr: ErrEscapes},
		} {
			t.Run(name+"/"+tc.rel, func(t *testing.T) {
				root, dir, outside := tree(t)
				want := tc.wantErr
				if name == "walk" && tc.walkErr != nil {
					want = tc.walkErr
				}
				file, err := openOrMkdir(root, tc.rel, 0o2770, by)
				if !errors.Is(err, want) {
					t.Fatalf("error %v, want %v", err, want)
				}
				if entries, _ := os.ReadDir(outside); len(entries) != 1 {
					t.Fatalf("something was made outside: %v", entries)
				}
				if err != nil {
					return
				}
				defer file.Close()
				got, _ := file.Stat()
				should, err := os.Stat(filepath.Join(dir, tc.want))
				if err != nil || !os.SameFile(got, should) {
					t.Fatalf("opened %v, which is not %s (%v)", file.Name(), tc.want, err)
				}
			})
		}
	}
}

func TestOpenOrMkdirModes(t *testing.T) {
	root, dir, _ := tree(t)
	if err := os.Mkdir(filepath.Join(dir, "half"), 0); err != nil { // as a kill between mkdir and chmod leaves it
		t.Fatal(err)
	}
	for _, rel := range []string{"x/y", "half"} {
		file, err := OpenOrMkdir(root, rel, 0o2777)
		if err != nil {
			t.Fatal(err)
		}
		info, _ := file.Stat()
		if got := info.Mode(); got != fs.ModeDir|fs.ModeSetgid|0o777 {
			t.Errorf("%s has mode %v", rel, got)
		}
		file.Close()
	}
	file, err := OpenOrMkdir(root, "a", 0o700)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, _ := file.Stat(); info.Mode().Perm() != 0o755 {
		t.Errorf("the mode of an existing directory changed to %v", info.Mode())
	}
}

// TestOpenOrMkdirRace swaps a directory on the way for a symlink that leads
// out, as fast as it can, while paths through it are opened and made.
func TestOpenOrMkdirRace(t *testing.T) {
	for name, by := range openers() {
		t.Run(name, func(t *testing.T) {
			root, dir, outside := tree(t)
			secret, err := os.Stat(filepath.Join(outside, "secret"))
			if err != nil {
				t.Fatal(err)
			}
			target, evil := filepath.Join(dir, "a/b"), filepath.Join(dir, "evil")
			if err := os.Mkdir(filepath.Join(target, "secret"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, evil); err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_ = unix.Renameat2(unix.AT_FDCWD, target, unix.AT_FDCWD, evil, unix.RENAME_EXCHANGE)
					}
				}
			})
			opened, refused := 0, 0
			for range 3000 {
				file, err := openOrMkdir(root, "a/b/secret/deep", 0o755, by)
				if err != nil {
					refused++
					continue
				}
				opened++
				info, _ := file.Stat()
				parent, err := os.Stat(ProcPath(file) + "/..")
				file.Close()
				if err != nil || os.SameFile(parent, secret) || os.SameFile(info, secret) {
					t.Fatalf("led out of the volume (%v)", err)
				}
			}
			close(stop)
			wg.Wait()
			if entries, _ := os.ReadDir(filepath.Join(outside, "secret")); len(entries) != 0 {
				t.Fatalf("something was made outside: %v", entries)
			}
			t.Logf("%d opened, %d refused", opened, refused)
			if opened == 0 {
				t.Error("never opened: the test shows nothing")
			}
		})
	}
}
