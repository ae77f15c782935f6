package csi

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
)

const (
	escapedName = "kubernetes.io~csi"
	recordFile  = "vol_data.json"
	devicesDir  = "volumeDevices"
	dirMode     = 0o750
)

// layout knows the paths below the root directory.
type layout struct{ root string }

func (l layout) base() string { return filepath.Join(l.root, "plugins", "kubernetes.io", "csi") }
func (l layout) pods() string { return filepath.Join(l.root, "pods") }

// staging is where one volume is staged.
type staging struct {
	path   string // what the driver is told
	record string
	block  bool
}

func (l layout) staging(d described) staging {
	if d.block {
		return l.deviceStaging(d.name)
	}
	return l.mountStaging(d.volumeKey)
}

func (l layout) mountStaging(key volumeKey) staging {
	dir := filepath.Join(l.base(), key.driver, fmt.Sprintf("%x", sha256.Sum256([]byte(key.handle))))
	return staging{path: filepath.Join(dir, "globalmount"), record: filepath.Join(dir, recordFile)}
}

func (l layout) deviceStaging(pv string) staging {
	return staging{
		path:   filepath.Join(l.base(), devicesDir, "staging", pv),
		record: filepath.Join(l.base(), devicesDir, pv, "data", recordFile),
		block:  true,
	}
}

// place is where one volume of one pod is published.
type place struct {
	dir    string // the volume's own: a directory, or a link
	target string // what the driver is told
	record string
	block  bool
}

func (l layout) place(uid, name, dir, metaDir string, block bool) place {
	if block {
		return place{
			dir: dir, target: filepath.Join(l.base(), devicesDir, "publish", name, uid),
			record: filepath.Join(metaDir, recordFile), block: true,
		}
	}
	return place{dir: dir, target: filepath.Join(dir, "mount"), record: filepath.Join(dir, recordFile)}
}

// isDevice says whether a volume's own directory is one of block volumes.
func (l layout) isDevice(uid, name, dir string) bool { return dir == l.placeOf(uid, name, true).dir }

// placeOf is place for who has no directories at hand.
func (l layout) placeOf(uid, name string, block bool) place {
	pod := filepath.Join(l.pods(), uid)
	dir := filepath.Join(pod, "volumes", escapedName, name)
	if block {
		dir = filepath.Join(pod, devicesDir, escapedName, name)
	}
	return l.place(uid, name, dir, filepath.Join(pod, "plugins", escapedName, name), block)
}
