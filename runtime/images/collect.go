package images

import (
	"cmp"
	"slices"
	"time"

	"nodekit.dev/runtime"
)

// Record is an image with what the node remembers of it.
type Record struct {
	runtime.ImageInfo
	// FirstSeen is when the agent saw the image first, LastUsed when a
	// container of it was seen last (zero: never since the agent started).
	FirstSeen time.Time
	LastUsed  time.Time
}

// CollectPolicy says when unused images go.
type CollectPolicy struct {
	// MinAge keeps images that were seen first less than that ago, so that an
	// image is not removed between its pull and its container. Stock: 2 min.
	MinAge time.Duration
	// MaxAge removes images that were unused for longer, however much space
	// there is. 0: never.
	MaxAge time.Duration
	// Above HighPercent of disk usage images are removed until usage is at
	// LowPercent. Stock: 85 and 80.
	HighPercent int
	LowPercent  int
}

// DefaultCollectPolicy is the stock kubelet's.
func DefaultCollectPolicy() CollectPolicy {
	return CollectPolicy{MinAge: 2 * time.Minute, HighPercent: 85, LowPercent: 80}
}

// Collectable returns the images that may be removed, in the order in which
// they should go: the longest unused first, then the longest known, then by ID.
// Pinned images, images in use and images younger than MinAge never are.
// inUse holds IDs, tags or digests, whatever containers name their image by.
func Collectable(images []Record, inUse map[string]bool, now time.Time, policy CollectPolicy) []Record {
	var out []Record
	for _, image := range images {
		if image.Pinned || image.usedBy(inUse) || now.Sub(image.FirstSeen) < policy.MinAge {
			continue
		}
		out = append(out, image)
	}
	slices.SortFunc(out, func(a, b Record) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func (r Record) usedBy(inUse map[string]bool) bool {
	named := func(name string) bool { return inUse[name] }
	return inUse[r.ID] || slices.ContainsFunc(r.RepoTags, named) || slices.ContainsFunc(r.RepoDigests, named)
}

// unusedSince is the last moment the image was known to be of use: for one
// that was never used, the moment it was seen first.
func (r Record) unusedSince() time.Time {
	if r.LastUsed.After(r.FirstSeen) {
		return r.LastUsed
	}
	return r.FirstSeen
}

// BytesToFree is how much must go so that usage falls to LowPercent; 0 while
// usage is below HighPercent. capacity 0 (unknown) frees nothing.
func (p CollectPolicy) BytesToFree(capacity, available uint64) uint64 {
	if capacity == 0 || available > capacity {
		return 0
	}
	if used := 100 - int(available*100/capacity); used < p.HighPercent {
		return 0
	}
	wanted := capacity * uint64(100-p.LowPercent) / 100
	if wanted <= available {
		return 0
	}
	return wanted - available
}

// Choose picks from what Collectable returned: everything that is older than
// MaxAge, and then in order until toFree bytes are reached.
func Choose(collectable []Record, toFree uint64, now time.Time, policy CollectPolicy) []Record {
	var chosen, rest []Record
	var freed uint64
	for _, image := range collectable {
		if policy.MaxAge > 0 && now.Sub(image.unusedSince()) > policy.MaxAge {
			chosen = append(chosen, image)
			freed += image.Size
		} else {
			rest = append(rest, image)
		}
	}
	for _, image := range rest {
		if freed >= toFree {
			break
		}
		chosen = append(chosen, image)
		freed += image.Size
	}
	return chosen
}
