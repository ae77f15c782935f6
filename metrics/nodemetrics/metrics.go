package nodemetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/metrics"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// Config says where the metrics get what nobody tells them.
type Config struct {
	// NodeName is the label of kubelet_node_name.
	NodeName string
	// Pods lists the pods of the node; it is called when the metrics are shown.
	// Nil: nothing is counted then.
	Pods func() []node.PodView
	// CgroupVersion is 1 or 2; 0: not shown.
	CgroupVersion int
}

// Metrics are those of one agent. Safe for concurrent use.
type Metrics struct {
	cfg Config

	perPod                                       prometheus.Histogram
	work                                         *prometheus.HistogramVec
	firstWork, start                             prometheus.Histogram
	startTotal, startSLI                         *prometheus.HistogramVec
	sandboxes, sandboxErrors, orphans            prometheus.Counter
	userNamespaced, userNamespacedErrors         prometheus.Counter
	containers, containerErrors, containersEnded *prometheus.CounterVec
	rejected                                     *prometheus.CounterVec

	mu   sync.Mutex
	pods map[string]*history // by UID
}

// New makes the metrics; Collectors registers them.
func New(cfg Config) *Metrics {
	m := &Metrics{cfg: cfg, pods: map[string]*history{}}
	m.addTimes()
	m.addCounts()
	return m
}

// startBuckets are those of the time that pods take to run.
func startBuckets() []float64 {
	return []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
}

func (m *Metrics) addTimes() {
	m.perPod = metrics.NewHistogram(metrics.Opts{
		Name: "kubelet_containers_per_pod_count", Help: "How many containers pods have.", Buckets: prometheus.ExponentialBuckets(1, 2, 5),
	})
	m.work = metrics.NewHistogramVec(metrics.Opts{
		Name: "kubelet_pod_worker_duration_seconds", Help: "How long each action for a pod took, in seconds: create until it first ran, kill for stops, sync for the rest.",
	}, "operation_type")
	m.firstWork = metrics.NewHistogram(metrics.Opts{
		Name: "kubelet_pod_worker_start_duration_seconds", Help: "Time from when a pod was seen until something was done for it, in seconds.",
	})
	m.start = metrics.NewHistogram(metrics.Opts{
		Name: "kubelet_pod_start_duration_seconds", Help: "Time from when a pod was seen until it ran, in seconds.", Buckets: startBuckets(),
	})
	m.startTotal = metrics.NewHistogramVec(metrics.Opts{
		Name: "kubelet_pod_start_total_duration_seconds", Help: "Time from the creation of a pod of the API server until it ran, in seconds.", Buckets: startBuckets(),
	})
	m.startSLI = metrics.NewHistogramVec(metrics.Opts{
		Name: "kubelet_pod_start_sli_duration_seconds", Help: "The same without the time in which its images were pulled, in seconds.", Buckets: startBuckets(),
	})
}

func (m *Metrics) addCounts() {
	counter := func(name, help string) prometheus.Counter {
		return metrics.NewCounter(metrics.Opts{Name: name, Help: help})
	}
	m.sandboxes = counter("kubelet_started_pods_total", "Sandboxes of pods that the agent set out to make.")
	m.sandboxErrors = counter("kubelet_started_pods_errors_total", "Sandboxes of pods that could not be made.")
	m.userNamespaced = counter("kubelet_started_user_namespaced_pods_total", "Sandboxes with a user namespace that the agent set out to make.")
	m.userNamespacedErrors = counter("kubelet_started_user_namespaced_pods_errors_total", "Sandboxes with a user namespace that could not be made.")
	m.orphans = counter("kubelet_orphaned_runtime_pods_total", "Pods that were found in the runtime and that nobody names.")
	m.containers = metrics.NewCounterVec(metrics.Opts{
		Name: "kubelet_started_containers_total", Help: "Containers that the agent set out to start.",
	}, "container_type")
	m.containerErrors = metrics.NewCounterVec(metrics.Opts{
		Name: "kubelet_started_containers_errors_total", Help: "Containers that could not be started, by reason.",
	}, "container_type", "code")
	m.containersEnded = metrics.NewCounterVec(metrics.Opts{
		Name: "kubelet_terminated_containers_total", Help: "Containers that ended.",
	}, "container_type", "exit_code", "reason")
	m.rejected = metrics.NewCounterVec(metrics.Opts{
		Name: "kubelet_admission_rejections_total", Help: "Pods that were not admitted, by reason.",
	}, "reason")
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.perPod, m.work, m.firstWork, m.start, m.startTotal, m.startSLI,
		m.sandboxes, m.sandboxErrors, m.userNamespaced, m.userNamespacedErrors, m.orphans,
		m.containers, m.containerErrors, m.containersEnded, m.rejected, newCensus(m.cfg),
	}
}

// Observer observes the node.
func (m *Metrics) Observer() node.Observer {
	return node.Observer{
		PodAdded:   func(p node.PodView) { m.added(p, time.Now()) },
		PodRemoved: m.removed,
		PodStatus:  func(p node.PodView) { m.status(p, time.Now()) },
		ActionDone: func(a podactor.ActionInfo) { m.done(a, time.Now()) },
	}
}

func (m *Metrics) added(p node.PodView, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[p.UID] = &history{seen: now, pod: p.Pod, static: p.Static, ended: map[string]bool{}}
	if p.Pod == nil {
		m.orphans.Inc()
		return
	}
	m.perPod.Observe(float64(len(p.Pod.Spec.Containers)))
}

func (m *Metrics) removed(p node.PodView) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, p.UID)
}

func (m *Metrics) status(p node.PodView, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.pods[p.UID]
	if h == nil {
		return
	}
	if p.Pod != nil {
		h.pod = p.Pod
	}
	first := !h.told
	h.told = true
	for _, c := range h.newlyEnded(p.Status) {
		if !first { // else it ended before this agent came
			m.containersEnded.WithLabelValues(c.kind, c.exitCode, c.reason).Inc()
		}
	}
	switch {
	case p.Status.Phase == corev1.PodRunning && !h.ran:
		h.ran = true
		if !first { // else it ran already when this agent came
			m.observeStart(h, now)
		}
	case p.Status.Phase == corev1.PodFailed && h.rejection(p.Status) && !h.rejected:
		h.rejected = true
		m.rejected.WithLabelValues(rejectionLabel(p.Status.Reason)).Inc()
	}
}

func (m *Metrics) observeStart(h *history, now time.Time) {
	m.start.Observe(now.Sub(h.seen).Seconds())
	if h.static || h.pod == nil || h.pod.CreationTimestamp.IsZero() {
		return
	}
	total := now.Sub(h.pod.CreationTimestamp.Time)
	m.startTotal.WithLabelValues().Observe(total.Seconds())
	m.startSLI.WithLabelValues().Observe((total - h.pulling()).Seconds())
}

func (m *Metrics) done(a podactor.ActionInfo, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.pods[a.UID]
	if h == nil {
		return
	}
	if !h.worked {
		h.worked = true
		m.firstWork.Observe(max(0, now.Add(-a.Took).Sub(h.seen)).Seconds())
	}
	m.work.WithLabelValues(h.operation(a.Kind)).Observe(a.Took.Seconds())
	switch a.Kind { //nolint:exhaustive // the others are not counted
	case lifecycle.Pull:
		h.pulled(now.Add(-a.Took), now)
	case lifecycle.RunSandbox:
		m.sandboxMade(h, a.Err)
	case lifecycle.StartContainer:
		kind := h.containerType(a.Container)
		m.containers.WithLabelValues(kind).Inc()
		if a.Err != nil {
			m.containerErrors.WithLabelValues(kind, reasoned.Reason(a.Err, "Unknown")).Inc()
		}
	}
}

func (m *Metrics) sandboxMade(h *history, err error) {
	users := h.pod != nil && h.pod.Spec.HostUsers != nil && !*h.pod.Spec.HostUsers
	m.sandboxes.Inc()
	if users {
		m.userNamespaced.Inc()
	}
	if err == nil {
		return
	}
	m.sandboxErrors.Inc()
	if users {
		m.userNamespacedErrors.Inc()
	}
}
