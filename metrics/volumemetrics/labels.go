package volumemetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"nodekit.dev/metrics"
)

// Labeling is a volume that a pod wants mounted with an SELinux label, and what
// came of it.
type Labeling struct {
	// Plugin is as in [Operation]; AccessMode "RWO", "ROX", "RWX" or "RWOP".
	Plugin, AccessMode string
	Outcome            LabelOutcome
	// Refused says that the pod can not start so; else it was only noted.
	Refused bool
}

// LabelOutcome is what came of a label.
type LabelOutcome string

// The outcomes.
const (
	// LabelAdmitted: the volume is mounted with the label.
	LabelAdmitted LabelOutcome = "admitted"
	// LabelUnknown: there is no telling which label a container would have.
	LabelUnknown LabelOutcome = "container"
	// LabelsDiffer: containers of the pod would need different ones.
	LabelsDiffer LabelOutcome = "pod"
	// LabelTaken: another pod has the volume mounted with another one.
	LabelTaken LabelOutcome = "volume"
)

// labels counts what became of SELinux labels. As with the stock kubelet these
// are gauges, though they only rise.
type labels struct {
	admitted         *prometheus.GaugeVec
	refused, warned  map[LabelOutcome]*prometheus.GaugeVec
	byPlugin, byMode []string
}

func newLabels() *labels {
	l := &labels{
		refused: map[LabelOutcome]*prometheus.GaugeVec{}, warned: map[LabelOutcome]*prometheus.GaugeVec{},
		byPlugin: []string{"volume_plugin", "access_mode"}, byMode: []string{"access_mode"},
	}
	gauge := func(name, help string, names []string) *prometheus.GaugeVec {
		return metrics.NewGaugeVec(metrics.Opts{Name: "volume_manager_selinux_" + name, Help: help}, names...)
	}
	l.admitted = gauge("volumes_admitted_total", "Volumes that were mounted with the SELinux label of their pod.", l.byPlugin)
	for outcome, one := range map[LabelOutcome]struct {
		name, help string
		labels     []string
	}{
		LabelUnknown: {"container", "Containers whose SELinux label can not be worked out", l.byMode},
		LabelsDiffer: {"pod_context_mismatch", "Volumes that containers of one pod use with different SELinux labels", l.byMode},
		LabelTaken:   {"volume_context_mismatch", "Volumes that are mounted with another SELinux label than a pod needs", l.byPlugin},
	} {
		l.refused[outcome] = gauge(one.name+"_errors_total", one.help+"; the pod can not start.", one.labels)
		l.warned[outcome] = gauge(one.name+"_warnings_total", one.help+"; the pod starts all the same.", one.labels)
	}
	return l
}

func (l *labels) all() []prometheus.Collector {
	out := []prometheus.Collector{l.admitted}
	for _, outcome := range []LabelOutcome{LabelUnknown, LabelsDiffer, LabelTaken} {
		out = append(out, l.refused[outcome], l.warned[outcome])
	}
	return out
}

// Labeled counts what came of a label; unknown outcomes are not counted.
func (m *Metrics) Labeled(l Labeling) {
	if l.Outcome == LabelAdmitted {
		m.labels.admitted.WithLabelValues(l.Plugin, l.AccessMode).Inc()
		return
	}
	counts := m.labels.warned
	if l.Refused {
		counts = m.labels.refused
	}
	switch vec := counts[l.Outcome]; {
	case vec == nil:
	case l.Outcome == LabelTaken:
		vec.WithLabelValues(l.Plugin, l.AccessMode).Inc()
	default:
		vec.WithLabelValues(l.AccessMode).Inc()
	}
}
