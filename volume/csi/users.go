package csi

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// used says whether a pod of this node uses the volume, as the pods' directories
// tell. What can not be read counts as a user. The lock is held.
func (p *Plugin) used(key volumeKey) (bool, error) {
	pods, err := names(p.layout.pods())
	if err != nil {
		return false, err
	}
	for _, uid := range pods {
		pod := filepath.Join(p.layout.pods(), uid)
		for _, dir := range []string{filepath.Join(pod, "volumes", escapedName), filepath.Join(pod, "plugins", escapedName)} {
			if used, err := usedIn(dir, key); err != nil || used {
				return used, err
			}
		}
		if used, err := p.usedDevice(pod, key); err != nil || used {
			return used, err
		}
	}
	return false, nil
}

// usedIn looks at the records of one pod.
func usedIn(dir string, key volumeKey) (bool, error) {
	volumes, err := names(dir)
	if err != nil {
		return false, err
	}
	for _, name := range volumes {
		r, ok, err := readRecord(filepath.Join(dir, name, recordFile))
		switch {
		case errors.Is(err, errDamaged):
			if mounted, err := isMountPoint(filepath.Join(dir, name, "mount")); err != nil || mounted {
				return true, err
			}
		case err != nil:
			return false, err
		case ok && r.key() == key && r.state() != unpublished:
			return true, nil
		}
	}
	return false, nil
}

// usedDevice looks for links to devices that only the stock kubelet knows of.
func (p *Plugin) usedDevice(pod string, key volumeKey) (bool, error) {
	links, err := names(filepath.Join(pod, devicesDir, escapedName))
	if err != nil {
		return false, err
	}
	for _, name := range links {
		if _, err := os.Lstat(filepath.Join(pod, "plugins", escapedName, name, recordFile)); err == nil {
			continue // ours, and looked at
		}
		r, ok, err := readRecord(p.layout.deviceStaging(name).record)
		if err != nil && !errors.Is(err, errDamaged) {
			return false, err
		}
		if ok && r.key() == key {
			return true, nil
		}
	}
	return false, nil
}

// names lists a directory; none where it is missing.
func names(dir string) (list []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list, err
}
