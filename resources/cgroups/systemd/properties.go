package systemd

import (
	"math"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"nodekit.dev/resources"
	"nodekit.dev/resources/cgroups"
)

// The names are those of systemd.resource-control(5) and of the D-Bus API
// (org.freedesktop.systemd1(5)).

// infinity is how D-Bus spells "no limit".
const infinity = uint64(math.MaxUint64)

// unitProperties make the slice one that systemd does not end by itself, with
// each controller that pods are held to.
func unitProperties(unified bool) []sd.Property {
	props := []sd.Property{
		sd.PropDescription("pod of a node agent"),
		// By default a slice is stopped first thing when the machine shuts down,
		// with all in it: the agent ends pods in an order of its own.
		property("DefaultDependencies", false),
		property("CPUAccounting", true),
		property("MemoryAccounting", true),
		property("TasksAccounting", true),
	}
	if unified {
		return append(props, property("IOAccounting", true))
	}
	return append(props, property("BlockIOAccounting", true))
}

// limitProperties has every limit, so that one which was dropped is lifted.
func limitProperties(w cgroups.Wanted, unified bool) []sd.Property {
	props := []sd.Property{
		property("CPUQuotaPerSecUSec", perSecond(w.CPUQuota, w.CPUPeriod)),
		property("TasksMax", orInfinity(w.Pids)),
	}
	if w.CPUPeriod > 0 {
		props = append(props, property("CPUQuotaPeriodUSec", uint64(w.CPUPeriod)))
	}
	if unified {
		return append(props, property("CPUWeight", uint64(resources.Weight(w.CPUShares))), property("MemoryMax", orInfinity(w.Memory)))
	}
	return append(props, property("CPUShares", uint64(max(w.CPUShares, resources.MinShares))), property("MemoryLimit", orInfinity(w.Memory)))
}

// wholePercent is 1 % of a second in µs: systemd keeps quotas as percents.
const wholePercent = 10_000

// perSecond turns a quota in µs per period into µs per second, rounded up to a
// whole percent: down would take from the pod.
func perSecond(quota, period int64) uint64 {
	if quota <= 0 || period <= 0 {
		return infinity
	}
	perSecond := uint64(math.Ceil(float64(quota) * 1e6 / float64(period)))
	return (perSecond + wholePercent - 1) / wholePercent * wholePercent
}

func orInfinity(n int64) uint64 {
	if n <= 0 {
		return infinity
	}
	return uint64(n)
}

func property(name string, value any) sd.Property {
	return sd.Property{Name: name, Value: dbus.MakeVariant(value)}
}
