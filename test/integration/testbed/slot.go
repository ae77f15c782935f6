package testbed

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxSlots is how many beds may live on one machine at once.
const maxSlots = 64

// base is where beds live. It is one place for the machine, because the names
// of a slot (bridge, subnet, cgroup) are; it is short because socket paths end
// at 107 bytes, and on disk because overlayfs needs that.
const base = "/var/tmp/nodekit-bed"

// slot is one of the numbered places where a bed can live. All names that a
// bed uses outside its folder follow from the number.
type slot struct {
	number int
	dir    string
	lock   *os.File
}

// errTaken means that a living process holds the slot.
var errTaken = errors.New("the slot is taken")

// takeSlot claims the first slot that no living process holds.
func takeSlot() (*slot, error) {
	for n := range maxSlots {
		s, err := lockSlot(n)
		if !errors.Is(err, errTaken) {
			return s, err
		}
	}
	return nil, fmt.Errorf("all %d slots in %s are taken", maxSlots, base)
}

// abandonedSlots claims the slots that a killed process has left things in.
func abandonedSlots() ([]*slot, error) {
	var found []*slot
	for n := range maxSlots {
		if _, err := os.Stat(slotDir(n)); err != nil {
			continue
		}
		s, err := lockSlot(n)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return found, err
		}
		found = append(found, s)
	}
	return found, nil
}

func slotDir(n int) string { return filepath.Join(base, strconv.Itoa(n)) }

func lockSlot(n int) (*slot, error) {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFile(slotDir(n) + ".lock")
	if err != nil {
		return nil, err
	}
	return &slot{number: n, dir: slotDir(n), lock: lock}, nil
}

// lockFile takes an exclusive lock that the kernel drops when this process
// ends, however it ends. Children do not inherit it.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errTaken
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func (s *slot) release() error { return s.lock.Close() }

func (s *slot) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// name is the bridge, the CNI network and the cgroup root of the slot.
func (s *slot) name() string { return fmt.Sprintf("nkbed%d", s.number) }

func (s *slot) subnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, byte(s.number), 0}), 24)
}

// bridgeIP is the bridge's own address, which pods reach the node at.
func (s *slot) bridgeIP() netip.Addr { return s.subnet().Addr().Next() }
