package resources

import "time"

// The kernel's bounds for CPU values. A request above 256 cores is cut to
// MaxShares instead of being refused by the kernel (k/k#106570).
const (
	MinShares = 2
	MaxShares = 262144

	// minQuota is the least CFS quota, in µs, that the kernel takes.
	minQuota = 1000
)

// CPUQuota says whether CPU limits are enforced, and over which period.
type CPUQuota struct {
	Enforce bool
	Period  time.Duration // 1 ms to 1 s
}

// DefaultCPUQuota enforces limits over 100 ms.
func DefaultCPUQuota() CPUQuota { return CPUQuota{Enforce: true, Period: 100 * time.Millisecond} }

// Shares turns thousandths of a CPU into cgroup v1 shares.
func Shares(milliCPU int64) int64 {
	return min(max(sharesUnbounded(milliCPU), MinShares), MaxShares)
}

func sharesUnbounded(milliCPU int64) int64 {
	const milliOfMax = MaxShares * 1000 / 1024
	if milliCPU >= milliOfMax { // also keeps the product below from overflowing
		return MaxShares
	}
	return milliCPU * 1024 / 1000
}

// Weight turns cgroup v1 shares into a cgroup v2 cpu.weight of 1 to 10000.
func Weight(shares int64) int64 {
	shares = min(max(shares, MinShares), MaxShares)
	return 1 + (shares-MinShares)*9999/(MaxShares-MinShares)
}

// Micros is the quota in µs per period for a limit in thousandths of a CPU; 0
// without a limit or where limits are not enforced.
func (q CPUQuota) Micros(milliCPU int64) int64 {
	if !q.Enforce || milliCPU <= 0 {
		return 0
	}
	return max(milliCPU*q.Period.Microseconds()/1000, minQuota)
}
