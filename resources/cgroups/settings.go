package cgroups

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"nodekit.dev/resources"
)

// Wanted is what a pod's cgroup should be held to.
type Wanted struct {
	resources.Limits
	Pids int64 // most processes and threads; 0: not set
}

// setting is one file to write.
type setting struct{ controller, file, value string }

// unlimited is how v1 and v2 spell "no limit".
const (
	unlimitedV1 = "-1"
	unlimitedV2 = "max"
)

// settings are the files of this hierarchy to write for the cgroup dir. Absent
// limits are written too, so that a limit that was dropped is lifted.
func (h hierarchy) settings(dir string, w Wanted) []setting {
	if h.unified {
		return append(settingsV2(w), hugepages(dir, ".max", w)...)
	}
	out := slices.DeleteFunc(settingsV1(w), func(s setting) bool { return !slices.Contains(h.controllers, s.controller) })
	if slices.Contains(h.controllers, "hugetlb") {
		out = append(out, hugepages(dir, ".limit_in_bytes", w)...)
	}
	return out
}

func settingsV1(w Wanted) []setting {
	out := []setting{{"cpu", "cpu.shares", number(w.CPUShares)}}
	if w.CPUPeriod > 0 {
		out = append(out, setting{"cpu", "cpu.cfs_period_us", number(w.CPUPeriod)})
	}
	out = append(out,
		setting{"cpu", "cpu.cfs_quota_us", limit(w.CPUQuota, unlimitedV1)},
		setting{"memory", "memory.limit_in_bytes", limit(w.Memory, unlimitedV1)})
	return withPids(out, w)
}

func settingsV2(w Wanted) []setting {
	cpuMax := limit(w.CPUQuota, unlimitedV2)
	if w.CPUPeriod > 0 {
		cpuMax += " " + number(w.CPUPeriod)
	}
	return withPids([]setting{
		{"cpu", "cpu.weight", number(resources.Weight(w.CPUShares))},
		{"cpu", "cpu.max", cpuMax},
		{"memory", "memory.max", limit(w.Memory, unlimitedV2)},
	}, w)
}

func withPids(out []setting, w Wanted) []setting {
	if w.Pids > 0 {
		out = append(out, setting{"pids", "pids.max", number(w.Pids)})
	}
	return out
}

// hugepages holds the pod to its limit of every page size that the kernel has
// a file for, which is none at all where it did not ask for that size. A kernel
// without hugetlb has no such files (k/k#106912); a size that the pod asks for
// is still written, so that its absence is noticed.
func hugepages(dir, suffix string, w Wanted) []setting {
	limits := map[string]uint64{}
	for _, size := range pageSizes(dir, suffix) {
		limits[size] = 0
	}
	for size, bytes := range w.Hugepages {
		limits[size] = bytes
	}
	var out []setting
	for size, bytes := range limits {
		out = append(out, setting{"hugetlb", "hugetlb." + size + suffix, strconv.FormatUint(bytes, 10)})
	}
	slices.SortFunc(out, func(a, b setting) int { return strings.Compare(a.file, b.file) })
	return out
}

// pageSizes reads the kernel's page sizes off the names of a cgroup's files.
func pageSizes(dir, suffix string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the writes that follow tell what is wrong
	}
	var out []string
	for _, e := range entries {
		rest, isHuge := strings.CutPrefix(e.Name(), "hugetlb.")
		size, isLimit := strings.CutSuffix(rest, suffix)
		if isHuge && isLimit && !strings.Contains(size, ".") { // not the reservation's own "2MB.rsvd"
			out = append(out, size)
		}
	}
	return out
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func limit(n int64, unlimited string) string {
	if n <= 0 {
		return unlimited
	}
	return number(n)
}
