package cgroups

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"nodekit.dev/resources"
)

// fakeSlices is a systemd whose slices are directories below mount.
type fakeSlices struct {
	mount   string
	err     error
	wanted  map[string]Wanted
	removed []string
}

func (f *fakeSlices) Ensure(_ context.Context, name string, w Wanted, unified bool) error {
	if f.err == nil && unified {
		f.wanted[name] = w
	}
	return f.err
}

func (f *fakeSlices) Remove(_ context.Context, name string) error {
	f.removed = append(f.removed, name)
	if found, _ := filepath.Glob(filepath.Join(f.mount, "*", "*", name)); len(found) > 0 {
		return errors.New("not empty yet")
	}
	return f.err
}

const podUID = "0a1b2c3d-0000-4000-8000-000000000001"

func TestSystemd(t *testing.T) {
	cfg := Default()
	cfg.Mount, cfg.PodPids, cfg.Names.Driver = t.TempDir(), 5, resources.Systemd
	const name = "kubepods-burstable-pod0a1b2c3d_0000_4000_8000_000000000001.slice"
	classes := filepath.Join(cfg.Mount, "kubepods.slice", "kubepods-burstable.slice")
	for _, dir := range []string{cfg.Mount, filepath.Dir(classes), classes, filepath.Join(classes, name)} {
		fakeFiles(t, dir, "cgroup.controllers", "cgroup.subtree_control")
	}
	fake := &fakeSlices{mount: cfg.Mount, wanted: map[string]Wanted{}}
	m, err := New(cfg, fake, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Ensure(t.Context(), burstable(podUID)); err != nil {
		t.Fatal(err)
	}
	if got := fake.wanted[name]; got.Memory != 64<<20 || got.CPUQuota != 50_000 || got.Pids != 5 {
		t.Errorf("systemd was asked for %+v", fake.wanted)
	}
	if uids, err := PodUIDs(cfg); err != nil || !slices.Equal(uids, []string{podUID}) {
		t.Errorf("listed %q, %v", uids, err)
	}
	if err := os.RemoveAll(filepath.Join(classes, name)); err != nil { // fake files are in the way of rmdir
		t.Fatal(err)
	}
	if err := m.Remove(t.Context(), podUID); err != nil {
		t.Fatal(err)
	}
	if len(fake.removed) != 3 || !slices.Contains(fake.removed, name) {
		t.Errorf("removed %q", fake.removed)
	}
	fake.err = errors.New("no systemd")
	for _, err := range []error{m.Ensure(t.Context(), burstable(podUID)), m.Remove(t.Context(), podUID)} {
		if !errors.Is(err, fake.err) {
			t.Errorf("error %v", err)
		}
	}
}

// A slice from which no single UID follows is nobody's: it may be a living pod's.
func TestReadUID(t *testing.T) {
	for dir, want := range map[string]string{
		"kubepods-pod0a1b2c3d_0000_4000_8000_000000000001.slice":           podUID,
		"kubepods-pod0123456789abcdef0123456789abcdef.slice":               "0123456789abcdef0123456789abcdef",
		"kubepods-podweb_1.slice":                                          "",
		"kubepods-burstable.slice":                                         "",
		"kubepods-pod0123456789abcdef0123456789abcdef":                     "",
		"kubepods-burstable-pod0a1b2c3d_0000_4000_8000_000000000001.slice": "",
	} {
		example := filepath.Base(resources.CgroupNames{Driver: resources.Systemd}.Candidates(exampleUID)[0])
		if got, ok := readUID(resources.Systemd, dir, example); got != want || ok != (want != "") {
			t.Errorf("%s is of %q, want %q", dir, got, want)
		}
	}
}
