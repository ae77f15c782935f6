package userns

import (
	"context"
	"fmt"
	"path/filepath"
)

// unit is what ranges are a multiple of, and their size by default.
const unit = 65536

// Config says which IDs there are to give away.
type Config struct {
	// PodsDir holds a directory for each pod, absolute.
	PodsDir string
	// IDsPerPod is the size of each range, a multiple of 65536; 0 means 65536.
	IDsPerPod int64
	// MaxPods is how many pods the IDs have to do for; 0: that is not checked.
	MaxPods int
	// Owned tells which IDs may be given away. It may block, and is asked at the
	// first need, until it answers. Nil: all but the first IDsPerPod.
	Owned func(ctx context.Context) (IDs, error)
}

// IDs is a range of user IDs, and of group IDs with the same numbers.
type IDs struct{ First, Length uint32 }

func (c Config) complete() (Config, error) {
	if !filepath.IsAbs(c.PodsDir) {
		return c, fmt.Errorf("userns: PodsDir %q must be an absolute path", c.PodsDir)
	}
	if c.IDsPerPod == 0 {
		c.IDsPerPod = unit
	}
	if c.IDsPerPod < 0 || c.IDsPerPod%unit != 0 || c.IDsPerPod >= 1<<32 {
		return c, fmt.Errorf("userns: IDsPerPod %d must be a multiple of %d and less than 4294967296", c.IDsPerPod, unit)
	}
	return c, nil
}

// check refuses IDs that can not be cut into ranges, and those of the node.
func (c Config) check(owned IDs) error {
	size := uint32(c.IDsPerPod)
	switch {
	case owned.First%size != 0:
		return fmt.Errorf("kubelet user assigned ID %v is not a multiple of %v", owned.First, size)
	case owned.First < size:
		return fmt.Errorf("kubelet user assigned ID %v must be greater or equal to %v", owned.First, size)
	case owned.Length%size != 0:
		return fmt.Errorf("kubelet user assigned IDs length %v is not a multiple of %v", owned.Length, size)
	case uint64(owned.First)+uint64(owned.Length) > 1<<32:
		return fmt.Errorf("kubelet user assigned IDs from %v on, %v of them: there are not so many", owned.First, owned.Length)
	case int64(owned.Length/size) < int64(c.MaxPods):
		return fmt.Errorf("kubelet user assigned IDs are not enough to support %v pods", c.MaxPods)
	}
	return nil
}
