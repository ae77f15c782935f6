package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// The layout, which is the stock kubelet's and known to applications:
//
//	VOLUME/..2026_01_31_10_20_30.1234567890/  the files of one version
//	VOLUME/..data                             symlink to that directory
//	VOLUME/user                               symlink to ..data/user
//
// A new version replaces ..data by a rename: whoever reads sees all files of
// the old version or all of the new one.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	stampFormat = "..2006_01_02_15_04_05."
)

// writer writes payloads into one volume. All its work stays below the
// directory, whatever symlinks somebody may have put there.
type writer struct {
	root  *os.Root
	group *int64 // fsGroup; nil: none
}

// write makes the volume hold the payload, which is clean. It says whether
// anything had to be written. Idempotent; what an interrupted call left is
// finished or taken away.
func (w writer) write(p payload) (changed bool, err error) {
	current, err := w.current()
	if err != nil {
		return false, err
	}
	if current != "" && w.holds(current, p) {
		return false, errors.Join(w.link(p), w.unlink(p), w.removeOld(current))
	}
	if current == "" {
		// Nobody reads yet. With the links first, ..data means: complete.
		if err := w.link(p); err != nil {
			return false, err
		}
	}
	next, err := w.version(p)
	if err != nil {
		return false, err
	}
	if err := w.publish(next); err != nil {
		return false, errors.Join(err, w.root.RemoveAll(next))
	}
	return true, errors.Join(w.link(p), w.unlink(p), w.removeOld(next))
}

// current is the directory that ..data points to; empty: none.
func (w writer) current() (string, error) {
	target, err := w.root.Readlink(dataLink)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if info, err := w.root.Lstat(target); err != nil || !info.IsDir() || strings.Contains(target, "/") {
		return "", nil //nolint:nilerr // a link that leads nowhere is replaced
	}
	return target, nil
}

// holds says whether a version is the payload, byte by byte.
func (w writer) holds(version string, p payload) bool {
	found := 0
	err := fs.WalkDir(w.root.FS(), version, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want, ok := p[strings.TrimPrefix(name, version+"/")]
		if !ok || !entry.Type().IsRegular() {
			return errDiffers
		}
		have, err := w.root.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, want.data) {
			return errDiffers
		}
		found++
		return nil
	})
	return err == nil && found == len(p)
}

var errDiffers = errors.New("differs")

// version writes the payload into a new directory and returns its name.
func (w writer) version(p payload) (dir string, err error) {
	for range 100 {
		dir = fmt.Sprintf("%s%010d", time.Now().UTC().Format(stampFormat), rand.N(int64(1e10)))
		if err = w.root.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	if err := w.fill(dir, p); err != nil {
		return "", errors.Join(err, w.root.RemoveAll(dir))
	}
	return dir, nil
}

func (w writer) fill(dir string, p payload) error {
	dirs := map[string]bool{dir: true}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		full := path.Join(dir, name)
		for d := path.Dir(full); !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
		if err := w.root.MkdirAll(path.Dir(full), 0o755); err != nil {
			return err
		}
		if err := w.file(full, p[name]); err != nil {
			return err
		}
	}
	for d := range dirs {
		if err := w.dir(d); err != nil {
			return err
		}
	}
	return nil
}

// file writes one file. Its mode is what was asked for, whatever the umask is;
// with a group it can be read by that.
func (w writer) file(name string, f file) error {
	if err := w.root.WriteFile(name, f.data, 0o600); err != nil {
		return err
	}
	mode := fs.FileMode(f.mode) & fs.ModePerm
	if w.group != nil {
		mode |= 0o440
	}
	if err := w.own(name, f.user); err != nil {
		return err
	}
	return w.root.Chmod(name, mode)
}

func (w writer) dir(name string) error {
	mode := fs.FileMode(0o755)
	if w.group != nil {
		mode |= 0o550 | fs.ModeSetgid
	}
	if err := w.own(name, nil); err != nil {
		return err
	}
	return w.root.Chmod(name, mode)
}

// own gives a file, or a symlink itself, to its user and group.
func (w writer) own(name string, user *int64) error {
	if user == nil && w.group == nil {
		return nil
	}
	uid, gid := -1, -1
	if user != nil {
		uid = int(*user)
	}
	if w.group != nil {
		gid = int(*w.group)
	}
	return w.root.Lchown(name, uid, gid)
}

// publish makes a version the current one.
func (w writer) publish(version string) error {
	if err := w.root.Remove(newDataLink); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.root.Symlink(version, newDataLink); err != nil {
		return err
	}
	if err := w.own(newDataLink, nil); err != nil {
		return err
	}
	return w.root.Rename(newDataLink, dataLink)
}

// link makes the links that users see. What stands there already stays: it is
// such a link, or a mount point for a volume nested in this one.
func (w writer) link(p payload) error {
	for _, name := range p.top() {
		err := w.root.Symlink(path.Join(dataLink, name), name)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = w.own(name, p.topUser(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlink removes the links to what the payload does not have any more.
func (w writer) unlink(p payload) error {
	keep := p.top()
	return w.each(func(name string, isLink bool) error {
		if _, found := slices.BinarySearch(keep, name); found || !isLink || strings.HasPrefix(name, "..") {
			return nil
		}
		if target, err := w.root.Readlink(name); err != nil || target != path.Join(dataLink, name) {
			return err
		}
		return w.root.Remove(name)
	})
}

// removeOld removes all versions but the current one, and what was never
// published.
func (w writer) removeOld(current string) error {
	return w.each(func(name string, isLink bool) error {
		version := !isLink && strings.HasPrefix(name, "..") && name != current
		if version || name == newDataLink {
			return w.root.RemoveAll(name)
		}
		return nil
	})
}

func (w writer) each(do func(name string, isLink bool) error) error {
	dir, err := w.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		errs = append(errs, do(entry.Name(), entry.Type()&fs.ModeSymlink != 0))
	}
	return errors.Join(errs...)
}
