package stats

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Config says what is measured and how often. Zero values are as said; Period has
// none, see [Default].
type Config struct {
	// Period is how often each volume is measured, and a little more, so that not
	// all are at once; default 1 m (volumeStatsAggPeriod). 0 or less: never.
	Period time.Duration
	// Periods are those of volumes of one kind or plugin, by names such as
	// "kubernetes.io/csi:slow.example.com" (before) "kubernetes.io/csi".
	Periods map[string]time.Duration
	// Timeout is when a call is cancelled, and soon after given up; default 2 m.
	// Walks have their own.
	Timeout time.Duration
	// Width is how many calls run at once for volumes of one kind; default 10. A
	// call that takes longer than 2 s counts no more.
	Width int
	// Readers measure the volumes of a plugin, by its name, instead of this
	// package.
	Readers map[string]Reader
	// Conditions asks drivers for the condition of each volume, as the stock
	// kubelet did up to v1.36 with the gate CSIVolumeHealth; default false.
	Conditions bool
	// Health asks them for its health, as the stock kubelet does since v1.37 with
	// that gate; default false.
	Health bool
	// Quotas reads directories of pods with a user namespace from project quotas,
	// where there is one (gate LocalStorageCapacityIsolationFSQuotaMonitoring).
	Quotas bool
	// Walk is the budget of walks.
	Walk Walk
	// Observer sees what is measured.
	Observer Observer
}

// Walk is how directories are walked.
type Walk struct {
	// Width is how many walks run at once; default 1.
	Width int
	// A walk works for Slice and then rests for Rest; default 10 ms and 30 ms.
	Slice, Rest time.Duration
	// Timeout ends a walk without a result; default 10 m.
	Timeout time.Duration
	// Ratio is how many times longer than a walk took the next one is away, at
	// least; default 10.
	Ratio int
}

// Observer is told what was measured. Its functions may be nil, must not block,
// and are called concurrently.
type Observer struct {
	// Measured is called after each call, also one that failed or that was given
	// up and ended later.
	Measured func(Measured)
	// Figures is called with the new figures of a volume.
	Figures func(pod *corev1.Pod, s Stats)
	// GivenUp is called once for a call that does not end.
	GivenUp func(Measured)
	// ConditionChanged is called when the driver's word on a volume became another.
	ConditionChanged func(pod *corev1.Pod, s Stats)
	// HealthChanged is called when the health of a volume became another.
	HealthChanged func(pod *corev1.Pod, s Stats)
}

// Measured is one call.
type Measured struct {
	UID, Volume string
	Kind        string
	// Source is "statfs", "du", "fsquota", "block" or the CSI driver's name;
	// the plugin's name for other readers. Empty: it hung, or failed, before that
	// was known.
	Source string
	Took   time.Duration
	Err    error
}

// Default is the stock kubelet's: every minute.
func Default() Config { return Config{Period: time.Minute} }

// Validate names what can not be.
func (c Config) Validate() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("volume stats: Timeout %v is negative", c.Timeout)
	case c.Width < 0:
		return fmt.Errorf("volume stats: Width %d is negative", c.Width)
	case c.Walk.Width < 0 || c.Walk.Slice < 0 || c.Walk.Rest < 0 || c.Walk.Timeout < 0 || c.Walk.Ratio < 0:
		return fmt.Errorf("volume stats: Walk %+v: nothing of it may be negative", c.Walk)
	}
	return nil
}

// filled has the defaults in place of what is zero.
func (c Config) filled() Config {
	c.Timeout = cmp.Or(c.Timeout, 2*time.Minute)
	c.Width = cmp.Or(c.Width, 10)
	c.Walk = Walk{
		Width: cmp.Or(c.Walk.Width, 1),
		Slice: cmp.Or(c.Walk.Slice, 10*time.Millisecond), Rest: cmp.Or(c.Walk.Rest, 30*time.Millisecond),
		Timeout: cmp.Or(c.Walk.Timeout, 10*time.Minute), Ratio: cmp.Or(c.Walk.Ratio, 10),
	}
	return c
}

// period of volumes of that kind; 0: never.
func (c Config) period(kind, plugin string) time.Duration {
	for _, name := range []string{kind, plugin} {
		if p, ok := c.Periods[name]; ok {
			return max(0, p)
		}
	}
	return max(0, c.Period)
}

// Off says that nothing is ever measured.
func (c Config) Off() bool {
	for _, p := range c.Periods {
		if p > 0 {
			return false
		}
	}
	return c.Period <= 0
}
