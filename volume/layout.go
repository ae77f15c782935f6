package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// deletingSuffix marks a directory that is on its way out. Volume names are
// DNS labels, so no volume can have such a name.
const deletingSuffix = ".deleting~"

// dirMode is for the directories above volumes, as the stock kubelet's.
const dirMode = 0o750

// layout knows the paths below the root directory.
type layout struct{ root string }

func (l layout) pods() string                { return filepath.Join(l.root, "pods") }
func (l layout) pod(uid string) string       { return filepath.Join(l.pods(), uid) }
func (l layout) volumes(uid string) string   { return filepath.Join(l.pod(uid), "volumes") }
func (l layout) devices(uid string) string   { return filepath.Join(l.pod(uid), "volumeDevices") }
func (l layout) allSubPaths(u string) string { return filepath.Join(l.pod(u), "volume-subpaths") }

func (l layout) volume(uid, plugin, volume string) string {
	return filepath.Join(l.volumes(uid), escape(plugin), volume)
}

// device is the place of a volume that is a block device.
func (l layout) device(uid, plugin, volume string) string {
	return filepath.Join(l.devices(uid), escape(plugin), volume)
}

// place is where a volume's own directory, link or file is.
func (l layout) place(uid, plugin string, s Source) string {
	if s.Block() {
		return l.device(uid, plugin, s.Name())
	}
	return l.volume(uid, plugin, s.Name())
}

func (l layout) meta(uid, plugin, volume string) string {
	return filepath.Join(l.pod(uid), "plugins", escape(plugin), volume)
}

func (l layout) subPaths(uid, volume string) string {
	return filepath.Join(l.allSubPaths(uid), volume)
}

func (l layout) subPath(uid, volume, container string, index int) string {
	return filepath.Join(l.subPaths(uid, volume), container, strconv.Itoa(index))
}

// owing is there while the files of a mounted volume may still have to be given
// to the pod's group.
func (l layout) owing(uid, volume string) string {
	return filepath.Join(l.pod(uid), "volume-owners", volume)
}

func escape(plugin string) string   { return strings.ReplaceAll(plugin, "/", "~") }
func unescape(plugin string) string { return strings.ReplaceAll(plugin, "~", "/") }

// checkName refuses what must not become one part of a path.
func checkName(what, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%s %q can not name a directory", what, name)
	}
	return nil
}

// entries lists a directory's entries, none where it is missing or no directory.
func entries(dir string) ([]os.DirEntry, error) {
	info, err := os.Lstat(dir)
	if os.IsNotExist(err) || err == nil && !info.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return list, err
}

// dirs lists the names of the directories in dir.
func dirs(dir string) ([]string, error) {
	list, err := entries(dir)
	var names []string
	for _, entry := range list {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, err
}
