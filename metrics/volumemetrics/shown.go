package volumemetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Claim are the figures of a volume that a claim is bound to; nil: not known.
type Claim struct {
	Namespace, Name                string
	Capacity, Available, Used      *int64 // bytes
	Inodes, InodesFree, InodesUsed *int64
	// Abnormal is the driver's word on its condition.
	Abnormal *bool
}

// Census counts volumes by plugin, and what an earlier agent left of them.
type Census struct {
	Desired, Mounted map[string]int
	// Found and FoundErrors count volumes that the host had mounted when the agent
	// came; Cleaned and CleanErrors what was removed since nobody knew what it is.
	Found, FoundErrors, Cleaned, CleanErrors uint64
}

// Backend is one condition of what is behind a CSI driver.
type Backend struct{ Driver, Status, Reason string }

// shown are the metrics that are read when they are shown.
type shown struct {
	cfg Config

	capacity, available, used, inodes, inodesFree, inodesUsed, abnormal *prometheus.Desc
	volumes, found, foundErrors, cleaned, cleanErrors, backend          *prometheus.Desc
}

func newShown(cfg Config) *shown {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return metrics.NewDesc(metrics.Opts{Name: name, Help: help}, labels...)
	}
	claim := func(name, help string) *prometheus.Desc {
		return desc("kubelet_volume_stats_"+name, help, "namespace", "persistentvolumeclaim")
	}
	return &shown{
		cfg:        cfg,
		capacity:   claim("capacity_bytes", "What a claim's volume can hold, in bytes."),
		available:  claim("available_bytes", "What is left in a claim's volume, in bytes."),
		used:       claim("used_bytes", "What a claim's volume holds, in bytes."),
		inodes:     claim("inodes", "How many inodes a claim's volume can have."),
		inodesFree: claim("inodes_free", "How many inodes are left in a claim's volume."),
		inodesUsed: claim("inodes_used", "How many inodes a claim's volume has."),
		abnormal:   claim("health_status_abnormal", "1 where the driver of a claim's volume says that something is wrong with it, 0 where it says that nothing is."),
		volumes:    desc("volume_manager_total_volumes", "Volumes that pods want, and those that are mounted, by plugin.", "plugin_name", "state"),
		found:      desc("reconstruct_volume_operations_total", "Volumes that an earlier agent mounted and this one found on the host."),
		foundErrors: desc("reconstruct_volume_operations_errors_total",
			"Tries to make out a volume that an earlier agent mounted that failed."),
		cleaned: desc("force_cleaned_failed_volume_operations_total",
			"Volumes of an earlier agent that were removed although no plugin here knows them."),
		cleanErrors: desc("force_cleaned_failed_volume_operation_errors_total",
			"Tries to remove a volume that no plugin here knows that failed."),
		backend: desc("csi_node_storage_health_status",
			"1 for each condition that a CSI driver reports of what is behind it.", "driver_name", "status", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (s *shown) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.capacity, s.available, s.used, s.inodes, s.inodesFree, s.inodesUsed, s.abnormal,
		s.volumes, s.found, s.foundErrors, s.cleaned, s.cleanErrors, s.backend,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *shown) Collect(ch chan<- prometheus.Metric) {
	if s.cfg.Claims != nil {
		s.claims(ch, s.cfg.Claims())
	}
	if s.cfg.Census != nil {
		s.census(ch, s.cfg.Census())
	}
	if s.cfg.Backends != nil {
		once := map[Backend]bool{} // one series, however often it is reported
		for _, b := range s.cfg.Backends() {
			if !once[b] {
				once[b] = true
				gauge(ch, s.backend, 1, b.Driver, b.Status, b.Reason)
			}
		}
	}
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// claims shows each claim once.
func (s *shown) claims(ch chan<- prometheus.Metric, list []Claim) {
	type name struct{ namespace, name string }
	once := map[name]bool{}
	for _, c := range list {
		id := name{c.Namespace, c.Name}
		if once[id] {
			continue
		}
		once[id] = true
		for _, one := range []struct {
			desc  *prometheus.Desc
			value *int64
		}{
			{s.capacity, c.Capacity}, {s.available, c.Available}, {s.used, c.Used},
			{s.inodes, c.Inodes}, {s.inodesFree, c.InodesFree}, {s.inodesUsed, c.InodesUsed},
		} {
			if one.value != nil {
				gauge(ch, one.desc, float64(*one.value), c.Namespace, c.Name)
			}
		}
		if c.Abnormal != nil {
			value := 0.0
			if *c.Abnormal {
				value = 1
			}
			gauge(ch, s.abnormal, value, c.Namespace, c.Name)
		}
	}
}

func (s *shown) census(ch chan<- prometheus.Metric, c Census) {
	for state, counts := range map[string]map[string]int{"desired_state_of_world": c.Desired, "actual_state_of_world": c.Mounted} {
		for plugin, n := range counts {
			gauge(ch, s.volumes, float64(n), plugin, state)
		}
	}
	for d, n := range map[*prometheus.Desc]uint64{
		s.found: c.Found, s.foundErrors: c.FoundErrors, s.cleaned: c.Cleaned, s.cleanErrors: c.CleanErrors,
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
}
