package stats

import (
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// isolated says whether the pod has a user namespace. Others may change the
// project of their files, and so hide them from a quota.
func isolated(pod *corev1.Pod) bool {
	return pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers
}

// quotaUsage reads what the directory holds from its project quota; false: it has
// none of its own. Capacity and the like are those of the file system.
func quotaUsage(path string) (Usage, bool) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Usage{}, false
	}
	defer dir.Close()
	project, ok := ownProject(dir)
	if !ok {
		return Usage{}, false
	}
	q, err := projectQuota(dir, project)
	if err != nil {
		return Usage{}, false
	}
	usage, err := statfsUsage(path)
	if err != nil {
		return Usage{}, false
	}
	usage.Used, usage.InodesUsed = new(int64(q.space)), new(int64(q.inodes))
	return usage, true
}

// ownProject is the project that the directory passes on to what is made in it,
// unless it got that from the directory above: then others are in it, too.
func ownProject(dir *os.File) (uint32, bool) {
	here, err := attributesOf(dir)
	if err != nil || here.project == 0 || here.flags&projectInherit == 0 {
		return 0, false
	}
	parent, err := os.OpenFile(filepath.Dir(dir.Name()), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, false
	}
	defer parent.Close()
	above, err := attributesOf(parent)
	return here.project, err == nil && above.project != here.project
}

// attributes is struct fsxattr of the kernel.
type attributes struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

const projectInherit = 0x200 // FS_XFLAG_PROJINHERIT

// The numbers of two ioctls, whose direction bits some machines have elsewhere:
// they are taken from a call that is known for each.
const (
	ioctlRead     = unix.BLKGETSIZE64 & 0xE0000000
	ioctlWrite    = ioctlRead ^ 0xC0000000
	getAttributes = ioctlRead | unsafe.Sizeof(attributes{})<<16 | 'X'<<8 | 31
	setAttributes = ioctlWrite | unsafe.Sizeof(attributes{})<<16 | 'X'<<8 | 32
)

func attributesOf(dir *os.File) (attributes, error) {
	var a attributes
	return a, ioctl(dir, "read the attributes of", getAttributes, &a)
}

func ioctl(dir *os.File, what string, number uintptr, a *attributes) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), number, uintptr(unsafe.Pointer(a))); errno != 0 {
		return &fs.PathError{Op: what, Path: dir.Name(), Err: errno}
	}
	return nil
}

// quota is struct if_dqblk of the kernel.
type quota struct {
	blockHard, blockSoft, space  uint64
	inodeHard, inodeSoft, inodes uint64
	blockTime, inodeTime         uint64
	valid                        uint32
	_                            uint32
}

const (
	getQuota     = 0x800007
	projectKind  = 2
	projectQuery = getQuota<<8 | projectKind
)

// projectQuota asks the file system of the open directory, which needs Linux
// 5.14; a project that nothing belongs to has zeros.
func projectQuota(dir *os.File, project uint32) (quota, error) {
	var q quota
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), projectQuery, uintptr(project), uintptr(unsafe.Pointer(&q)), 0, 0)
	switch errno {
	case 0:
		return q, nil
	case unix.ENOENT: // xfs says so
		return quota{}, nil
	}
	return quota{}, &fs.PathError{Op: "read the project quota at", Path: dir.Name(), Err: errno}
}
