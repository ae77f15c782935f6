package nodemetrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/metrics"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// census counts what is there when it is asked.
type census struct {
	cfg Config

	nodeName, runningPods, runningContainers *prometheus.Desc
	desired, active, mirrors, working        *prometheus.Desc
	ephemeral, cgroupVersion                 *prometheus.Desc
}

func newCensus(cfg Config) *census {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return metrics.NewDesc(metrics.Opts{Name: name, Help: help}, labels...)
	}
	return &census{
		cfg:               cfg,
		nodeName:          desc("kubelet_node_name", "Always 1; the label is the name of the node.", "node"),
		runningPods:       desc("kubelet_running_pods", "Pods with a sandbox that runs."),
		runningContainers: desc("kubelet_running_containers", "Containers, by state.", "container_state"),
		desired:           desc("kubelet_desired_pods", "Pods that the sources name.", "static"),
		active:            desc("kubelet_active_pods", "Pods that have not ended.", "static"),
		mirrors:           desc("kubelet_mirror_pods", "Static pods that the API server is to show as mirror pods."),
		working:           desc("kubelet_working_pods", "Pods that something is done for, by what: sync, terminating, terminated; and why: desired, orphan, runtime_only.", "lifecycle", "config", "static"),
		ephemeral:         desc("kubelet_managed_ephemeral_containers", "Ephemeral containers of pods."),
		cgroupVersion:     desc("kubelet_cgroup_version", "The version of cgroups on the host."),
	}
}

// Describe implements prometheus.Collector.
func (c *census) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.nodeName, c.runningPods, c.runningContainers, c.desired, c.active, c.mirrors, c.working, c.ephemeral, c.cgroupVersion,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *census) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(c.nodeName, 1, c.cfg.NodeName)
	if c.cfg.CgroupVersion != 0 {
		gauge(c.cgroupVersion, c.cfg.CgroupVersion)
	}
	if c.cfg.Pods == nil {
		return
	}
	n := count(c.cfg.Pods())
	gauge(c.runningPods, n.running)
	gauge(c.ephemeral, n.ephemeral)
	gauge(c.mirrors, n.desired[true])
	for state, number := range n.containers {
		gauge(c.runningContainers, number, state)
	}
	for _, static := range []bool{false, true} {
		gauge(c.desired, n.desired[static], strconv.FormatBool(static))
		gauge(c.active, n.active[static], strconv.FormatBool(static))
	}
	for w, number := range n.working {
		gauge(c.working, number, w.lifecycle, w.config, w.static)
	}
}

// numbers is what count finds.
type numbers struct {
	running, ephemeral int
	containers         map[string]int
	desired, active    map[bool]int // by static
	working            map[work]int
}

// work is one combination of the labels of kubelet_working_pods.
type work struct{ lifecycle, config, static string }

// count is pure.
func count(pods []node.PodView) numbers {
	n := numbers{
		containers: map[string]int{"running": 0, "exited": 0}, desired: map[bool]int{}, active: map[bool]int{}, working: map[work]int{},
	}
	for _, p := range pods {
		n.working[workOf(p)]++
		n.ephemeral += len(p.Status.EphemeralContainerStatuses)
		if isDesired(p) {
			n.desired[p.Static]++
		}
		if p.Pod != nil && p.Phase < lifecycle.Cleaning {
			n.active[p.Static]++
		}
		if n.countContainers(p.Status) || sandboxRuns(p.Status) {
			n.running++
		}
	}
	return n
}

// countContainers also says whether any runs.
func (n *numbers) countContainers(status corev1.PodStatus) (anyRuns bool) {
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for _, c := range list {
			switch {
			case c.State.Running != nil:
				anyRuns = true
				n.containers["running"]++
			case c.State.Terminated != nil:
				n.containers["exited"]++
			}
		}
	}
	return anyRuns
}

func sandboxRuns(status corev1.PodStatus) bool {
	for _, c := range status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func isDesired(p node.PodView) bool { return p.Pod != nil && p.Source != "" && !p.Leaving }

func workOf(p node.PodView) work {
	w := work{lifecycle: "sync", config: "desired", static: strconv.FormatBool(p.Static)}
	switch p.Phase {
	case lifecycle.Stopping:
		w.lifecycle = "terminating"
	case lifecycle.Cleaning, lifecycle.Finished:
		w.lifecycle = "terminated"
	case lifecycle.Queued, lifecycle.Preparing, lifecycle.Running:
	}
	switch {
	case p.Pod == nil:
		w.config, w.static = "runtime_only", "unknown"
	case !isDesired(p):
		w.config = "orphan"
	}
	return w
}
