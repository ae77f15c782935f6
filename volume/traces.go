package volume

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// traces are what the host shows of a pod's volumes, those that are half made
// or half removed and those of unknown plugins included.
type traces struct {
	records map[string]claimRecord // by the volume's name in the pod
	dirs    []diskVolume           // of these volumes and of those without a claim
}

// diskVolume is one volume's directory under pods/UID.
type diskVolume struct {
	plugin   string // unescaped; empty: only subPaths, under the name in the pod
	name     string // as in Source.Name
	block    bool   // it is a device
	deleting bool
}

func (r claimRecord) owns(v diskVolume) bool {
	return r.Plugin == v.plugin && r.PersistentVolume.Name == v.name && r.source(corev1.Volume{}).Block() == v.block
}

func (l layout) disk(uid string, v diskVolume) string {
	if v.block {
		return l.device(uid, v.plugin, v.name)
	}
	return l.volume(uid, v.plugin, v.name)
}

// owners are the volumes whose claim has the directory.
func (t traces) owners(v diskVolume) (names []string) {
	for name, record := range t.records {
		if record.owns(v) {
			names = append(names, name)
		}
	}
	return names
}

// recorded says whether a record names the directory.
func (t traces) recorded(v diskVolume) bool { return len(t.owners(v)) > 0 }

// of are the directories that go with the volume of that name in the pod: those
// of its name without a claim, and that of its claim, unless another volume of
// the pod names the claim too.
func (t traces) of(name string) (dirs []diskVolume) {
	for _, v := range t.dirs {
		owners := t.owners(v)
		if len(owners) == 1 && owners[0] == name || len(owners) == 0 && v.name == name && v.plugin != "" {
			dirs = append(dirs, v)
		}
	}
	return dirs
}

// names are the volumes of which there is a trace.
func (t traces) names() []string {
	var names []string
	for name := range t.records {
		names = append(names, name)
	}
	for _, v := range t.dirs {
		if !t.recorded(v) {
			names = append(names, v.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// onDisk reads the traces of a pod's volumes.
func (m *Manager) onDisk(uid string) (traces, error) {
	records, err := m.claimRecords(uid)
	if err != nil {
		return traces{}, err
	}
	found := traces{records: records}
	whole := map[string]bool{}
	for _, block := range []bool{false, true} {
		list, err := m.diskVolumes(uid, block)
		if err != nil {
			return traces{}, err
		}
		for _, v := range list {
			found.dirs = append(found.dirs, v)
			whole[v.name] = whole[v.name] || !found.recorded(v)
		}
	}
	subPaths, err := dirs(m.layout.allSubPaths(uid))
	for _, name := range subPaths {
		if _, recorded := records[name]; !recorded && !whole[name] {
			found.dirs = append(found.dirs, diskVolume{name: name})
		}
	}
	return found, err
}

// diskVolumes are the volumes that have a directory, or those that have a place
// as a device, which may also be a file or a link.
func (m *Manager) diskVolumes(uid string, block bool) ([]diskVolume, error) {
	top := m.layout.volumes(uid)
	if block {
		top = m.layout.devices(uid)
	}
	plugins, err := dirs(top)
	if err != nil {
		return nil, err
	}
	var list []diskVolume
	for _, plugin := range plugins {
		found, err := entries(filepath.Join(top, plugin))
		if err != nil {
			return nil, err
		}
		for _, entry := range found {
			if block || entry.IsDir() {
				name, deleting := strings.CutSuffix(entry.Name(), deletingSuffix)
				list = append(list, diskVolume{plugin: unescape(plugin), name: name, block: block, deleting: deleting})
			}
		}
	}
	return list, nil
}

// Mounted lists the volumes of the pod that are mounted completely, sorted, by
// their names in the pod. It reads the host, never memory.
func (m *Manager) Mounted(ctx context.Context, uid string) ([]string, error) {
	if err := checkName("pod UID", uid); err != nil {
		return nil, err
	}
	found, err := m.onDisk(uid)
	if err != nil {
		return nil, fmt.Errorf("volumes of pod %s: %w", uid, err)
	}
	var mounted []string
	add := func(name, plugin, dir string, block bool, s Source) error {
		is, err := m.isMounted(ctx, uid, plugin, dir, block, s)
		if err != nil {
			m.ledger.count(func(f *Found) *uint64 { return &f.Failed })
			return fmt.Errorf("volume %q of pod %s: %w", name, uid, err)
		}
		if is {
			m.ledger.seen(volumeID{uid, name}, withDriver(plugin, s.Driver()))
			mounted = append(mounted, name)
		}
		return nil
	}
	for name, record := range found.records {
		s := record.source(corev1.Volume{Name: name})
		if err := add(name, record.Plugin, m.layout.place(uid, record.Plugin, s), s.Block(), s); err != nil {
			return nil, err
		}
	}
	for _, v := range found.dirs {
		switch {
		case v.deleting, found.recorded(v):
		case v.plugin == "": // only subPaths are left of it: a volume without a directory
			mounted = append(mounted, v.name)
		default:
			if err := add(v.name, v.plugin, m.layout.disk(uid, v), v.block, Source{Volume: corev1.Volume{Name: v.name}}); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(mounted)
	return slices.Compact(mounted), nil
}

// isMounted asks the plugin; one that this agent does not have mounts nothing.
func (m *Manager) isMounted(ctx context.Context, uid, name, dir string, block bool, s Source) (bool, error) {
	plugin := m.plugin(name)
	if plugin == nil || m.owing(uid, s.Volume.Name) {
		return false, nil
	}
	req := m.mountedRequest(uid, s, plugin)
	req.Dir, req.Block = dir, block
	where, err := plugin.Mounted(ctx, req)
	return where.Mounted, err
}
