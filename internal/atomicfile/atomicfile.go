// Package atomicfile writes files that are either the old or the new content
// after a crash, never half of each.
//
//	err := atomicfile.WriteChecked(path, state, 0o600)
//	...
//	state, err := atomicfile.ReadChecked(path)
//	var damaged *atomicfile.DamagedError
//	if errors.As(err, &damaged) {
//		kept, _ := atomicfile.SetAside(path, "damaged") // then rebuild the state
//	}
//
// Rules for callers: all writers of one path agree on Write or WriteChecked;
// a directory in which writers may have been killed is swept once at start
// ([Sweep]). All functions may be used concurrently.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tempMark is in the name of each file that is still being written. The dot in
// front keeps it out of directory scans that skip hidden files.
const tempMark = ".nodekit-tmp-"

// Write replaces path with data. After it returned nil, the new content
// survives a power failure; when it fails, the old content is untouched.
func Write(path string, data []byte, perm os.FileMode) (err error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	tmp, err := os.CreateTemp(dir, "."+base+tempMark+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if err := fill(tmp, data, perm); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// fill writes, syncs and closes f.
func fill(f *os.File, data []byte, perm os.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncDir makes the names in a directory (files made, renamed, removed)
// survive a power failure.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sweep removes what writers that were killed left in dir. It must not run
// while others write there. A missing dir is fine.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), tempMark) {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
