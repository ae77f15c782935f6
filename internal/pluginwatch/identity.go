package pluginwatch

import "golang.org/x/sys/unix"

// identity tells a socket from the next one of its name. The time of birth is
// needed because the number of an inode that was removed is soon used again.
type identity struct {
	dev, ino uint64
	born     unix.StatxTimestamp
}

func identify(path string) (identity, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st)
	return identity{dev: uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), ino: st.Ino, born: st.Btime}, err == nil
}
